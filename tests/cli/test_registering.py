"""`sandbay images register --from-registry` of an installation whose registry takes its time."""

import pytest

from sandbay.cli.progress import Bar
from tests.api import test_registering
from tests.api.test_registering import Slow
from tests.cli import test_cli
from tests.cli.test_cli import Point, Sandbay

environ, sandbay = test_cli.environ, test_cli.sandbay
slow = test_registering.slow

Shown = list[tuple[str, int, int | None]]


@pytest.fixture
def shown(slow: Slow, environ: Point, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What a bar shows, in order; the registry goes on as soon as some bytes were shown."""
    environ(slow.served.address)
    monkeypatch.setenv("SANDBAY_ADMIN_KEY", slow.served.admin_key)
    monkeypatch.setattr("sandbay.cli.progress._QUIET_FOR", 0.0)
    seen: Shown = []
    show = Bar._show

    def noting(bar: Bar, phase: str, done: int, total: int | None) -> None:
        seen.append((phase, done, total))
        if done:
            slow.go.set()
        show(bar, phase, done, total)

    monkeypatch.setattr(Bar, "_show", noting)
    return seen


def test_the_bar_rises_while_a_registry_is_read(slow: Slow, sandbay: Sandbay, shown: Shown) -> None:
    said = sandbay("images", "register", "web", "--from-registry", f"{slow.registry.host}/fx:big")
    assert (said.code, said.out.split()[0]) == (0, "web:1"), said.err
    assert "web: fetching 1 layer\n" in said.err
    told = [(done, total) for phase, done, total in shown if phase == "fetching 1 layer"]
    assert 0 < next(done for done, _ in told if done) < told[-1][0]
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


@pytest.mark.parametrize("option", ["--json", "-q"])
def test_programs_see_no_progress(slow: Slow, sandbay: Sandbay, shown: Shown, option: str) -> None:
    slow.go.set()
    said = sandbay("images", "register", "web", "--from-registry", f"{slow.registry.host}/fx:big", option)
    assert (said.code, said.err, shown) == (0, "", [])
    wrong = sandbay("images", "register", "web", "--from-registry", f"{slow.registry.host}/fx:none", option)
    assert (wrong.code, wrong.out) == (125, "")
