"""Kept state of the oci provider: whole or not at all, whatever fails; hostile files; ids that nobody else gets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbay.adapters.providers.oci import snapshots
from sandbay.domain.allocation import Presence
from sandbay.domain.ids import SnapshotId
from sandbay.domain.reasons import Reason
from tests.contracts.provider_harness import order_for, refused
from tests.providers.real_oci import Images, Installation

pytestmark = pytest.mark.real
SNAPSHOT = SnapshotId("snp_" + "3" * 20)


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def here(images: Images) -> Iterator[Installation]:
    it = Installation(images)
    try:
        yield it
    finally:
        it.provider.drop_snapshot(SNAPSHOT)
        it.end()


class FailedError(Exception):
    """Where kill -9 or a lost disk struck."""


def _failing(*_: object, **__: object) -> None:
    raise FailedError


STEPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "what is left out goes": lambda patch: patch.setattr(snapshots, "remove_tree", _failing),
    "its size is written": lambda patch: patch.setattr(snapshots, "write_file", _failing),
    "its bytes become durable": lambda patch: patch.setattr(f"{snapshots.__name__}.linux.syncfs", _failing),
    "it gets its name": lambda patch: patch.setattr(Path, "rename", _failing),
    "its name becomes durable": lambda patch: patch.setattr(snapshots, "sync_folder", _failing),
}


@pytest.mark.parametrize("step", STEPS)
def test_whatever_step_fails_it_is_kept_in_the_end(
    here: Installation, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = here.images.plain()
    one = here.start(plain)
    here.run(one, "echo 1 > n; echo 2 > /root/m")
    with monkeypatch.context() as patch:
        STEPS[step](patch)
        with pytest.raises(FailedError):
            here.provider.suspend(one, SNAPSHOT)
    here.provider.close()
    here.provider = here.opened()
    assert here.provider.presence(one) in (Presence.EXITED, Presence.ABSENT)
    held = here.provider.suspend(one, SNAPSHOT)
    assert held.bytes > 0
    assert here.provider.presence(one) is Presence.ABSENT
    again = here.start(plain, snapshot=SNAPSHOT)
    assert here.run(again, "cat n /root/m").stdout == b"1\n2\n"
    here.provider.destroy(again)


def test_a_copy_that_fails_costs_nothing(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = here.images.plain()
    one = here.start(plain)
    here.run(one, "echo 1 > n")
    here.provider.suspend(one, SNAPSHOT)
    order = order_for(plain, snapshot=SNAPSHOT)
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "_KEPT", ("upper", "nothing"))
        with refused(Reason.START_FAILED):
            here.provider.create(order)
    assert here.provider.presence(order.allocation) is Presence.ABSENT
    here.provider.create(order)
    assert here.run(order.allocation, "cat n").stdout == b"1\n"
    here.provider.destroy(order.allocation)


def test_nobody_gets_the_ids_of_what_is_kept(here: Installation) -> None:
    plain = here.images.plain()
    one = here.start(plain)
    base = here.provider._record(one).base
    here.provider.suspend(one, SNAPSHOT)
    other = here.start(plain)
    assert here.provider._record(other).base != base
    again = here.start(plain, snapshot=SNAPSHOT)
    assert here.provider._record(again).base == base
    for each in (other, again):
        here.provider.destroy(each)


def test_what_was_being_dropped_goes_at_the_next_start(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    one = here.start(here.images.plain())
    here.provider.suspend(one, SNAPSHOT)
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "remove_tree", _failing)
        with pytest.raises(FailedError):
            here.provider.drop_snapshot(SNAPSHOT)
    assert [path.name for path in (here.home / "snapshots").iterdir()] == [f".gone-{SNAPSHOT}"]
    here.provider.close()
    here.provider = here.opened()
    assert list((here.home / "snapshots").iterdir()) == []


def test_files_that_nobody_would_make_are_kept_too(here: Installation) -> None:
    """Deep folders, a sparse file, names that are no text, an attribute, a socket's place."""
    plain = here.images.plain()
    one = here.start(plain)
    made = (
        "cd /workspace; i=0; while [ $i -lt 300 ]; do mkdir 0123456789; cd 0123456789; i=$((i+1)); done; echo deep > f;"
        "cd /workspace; truncate -s 1G sparse; touch \"$(printf 'a\\nb\\377')\" -- -rf; ln -s /etc/shadow out"
    )
    assert here.run(one, made).exit.code == 0
    look = "find . -name f -exec cat {} +; stat -c %s sparse; ls -A; readlink out"
    before = here.run(one, look).stdout
    assert before.split()[:2] == [b"deep", b"1073741824"]
    outside = Path("/etc/shadow").stat()
    here.provider.suspend(one, SNAPSHOT)
    held = here.provider.suspend(one, SNAPSHOT)
    assert held.bytes < 1 << 28, "what is sparse takes no room"
    again = here.start(plain, snapshot=SNAPSHOT)
    assert here.run(again, look).stdout == before
    assert Path("/etc/shadow").stat() == outside
    here.provider.destroy(again)
