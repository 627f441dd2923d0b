"""The newcomer's tour, whole: every step insists on what it shows, so its exit code is the verdict."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.example_images import BUILT, ROOT
from tests.support.leaks import leftovers
from tools.quickstart.__main__ import main, take_turn

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture
def home() -> Iterator[Path]:
    """A place for the tour's installation; pytest's own is 0700, and user namespaces could not pass it."""
    with tempfile.TemporaryDirectory(prefix="sandbay-tour-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder) / "home"


def test_one_tour_at_a_time(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turn = take_turn(home)
    assert turn is not None
    with turn:
        assert main(["--home", str(home)]) == 1
    assert "another tour goes through" in capsys.readouterr().err
    assert not home.exists()


def test_the_tour_shows_what_it_says_and_leaves_nothing(layouts: Path, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.quickstart", "--exit", "--home", str(home)],
        cwd=ROOT,
        env={**os.environ, "SANDBAY_BUILD_CACHE": str(BUILT / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=1700,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    for shown in ("review:2", "project acme", "Many images, one installation.", "PNG", "Europe", "(image_not_ready)"):
        assert shown in done.stdout
    assert not home.exists()
    assert leftovers("ins_of_the_tour", [home]) == {}
