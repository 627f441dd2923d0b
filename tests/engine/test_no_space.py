"""A disk that is full at any point: the node is as before, says what is missing, and what was ready stays ready."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine import linux
from tests.contracts.blobs_suite import digest_of, pieces
from tests.engine.store_support import AMD64, NOTHING, Host, ignore
from tests.engine.test_store_crash import MOST_STEPS, Failing
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file, folder

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a small tmpfs, and unpacking sets owners"),
]

MIB = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A file system of so many KiB; a second call makes it another size."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = False

    def sized(kib: int) -> Path:
        nonlocal mounted
        options = f"size={kib}k,mode=700"
        linux.mount("tmpfs", place, "tmpfs", linux.MS_REMOUNT if mounted else 0, options)
        mounted = True
        return place

    yield sized
    if mounted:
        linux.umount2(place)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def layouts(tmp_path: Path) -> tuple[Layout, list[str]]:
    """A small image, and one of many files and a large one, which packs so well that the first look lets it pass."""
    layout = Layout(tmp_path / "layout")
    layout.image([[file("which", b"little")]], platform=AMD64, ref="little")
    many = [folder("d"), *(file(f"d/{n}", os.urandom(3000)) for n in range(100))]
    layout.image([many, [file("large", bytes(MIB))]], platform=AMD64, ref="big")
    return layout, ["little", "big"]


def refused(act: Callable[[], object]) -> Refusal | None:
    try:
        act()
    except RefusedError as error:
        return error.refusal
    return None


def free(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def test_at_any_size_it_fits_or_is_refused_and_all_is_as_before(
    host: Host, tmp_path: Path, small: Callable[[int], Path]
) -> None:
    layout, (little, big) = layouts(tmp_path)
    place = small(8 * 1024)
    host.root = place / "store"
    host.store = host.restarted()
    kept, wanted = host.register(layout.path, little), host.register(layout.path, big)
    host.store.prepare(kept, ignore)
    before = host.count()
    ran_out: list[bool | None] = []
    # From what the first look at the disk refuses, over every place where it runs out, to what fits.
    for kib in (128, 600, 800, 1100, 1500, 4096):
        small(kib)
        room = free(place)
        refusal = refused(lambda: host.store.prepare(wanted, ignore))
        ran_out.append(None if refusal is None else "budget" not in refusal.details)
        if refusal is None:
            host.store.remove(wanted.content_key)
        else:
            assert (refusal.reason, refusal.details["free"]) == (Reason.NO_SPACE, free(place))
            assert ran_out[-1] is False or int(str(refusal.details["needed"])) > free(place)
            assert str(place) not in str(refusal)
        assert free(place) == room, "all of it is given back"
        assert host.count() == before
        assert host.store.held() == (kept.content_key,)
        host.store.verified(kept.content_key)
        host.check_whole()
    assert (ran_out[0], ran_out[-1]) == (False, None)
    assert ran_out.count(True) >= 3, "it is to run out in the middle"


def full(real: Callable[..., Any], at: int) -> Failing:
    """The disk is full at the n-th call."""
    plan = Failing(real, at)
    plan.error = OSError(errno.ENOSPC, "No space left on device")
    return plan


STEPS: dict[str, tuple[Any, str]] = {
    **{name: (os, name) for name in ("open", "mkdir", "rename", "write", "fsync")},
    "syncfs": (linux, "syncfs"),
}


@pytest.mark.parametrize("step", STEPS)
def test_every_step_that_writes_may_find_it_full(
    step: str, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, (little, _) = layouts(tmp_path)
    variant = host.register(layout.path, little)
    where, name = STEPS[step]
    for at in range(1, MOST_STEPS):
        plan = full(getattr(where, name), at)
        with monkeypatch.context() as patch, suppress(OSError):
            # Of what is undone on the way out an error may remain: then it is the disk's own.
            patch.setattr(where, name, plan)
            refusal = refused(lambda: host.store.prepare(variant, ignore))
            if plan.calls >= at and refusal is not None:
                assert refusal.reason is Reason.NO_SPACE
                assert {"needed", "free"} <= set(refusal.details)
        host.store = host.restarted()
        assert host.store.held() in ((), (variant.content_key,))
        host.check_whole()
        host.store.prepare(variant, ignore)
        host.store.remove(variant.content_key)
        assert host.count() == NOTHING
        if plan.calls < at:
            return
    pytest.fail("a prepare takes more steps than this test knows")


def test_the_installations_store_says_so_too(tmp_path: Path, small: Callable[[int], Path]) -> None:
    place = small(1024)
    blobs = FolderBlobs(place / "blobs")
    room = free(place)
    data = os.urandom(2 * MIB)
    refusal = refused(lambda: blobs.put(digest_of(data), len(data), pieces(data)))
    assert refusal is not None
    assert (refusal.reason, refusal.details) == (Reason.NO_SPACE, {"needed": len(data), "free": room})
    assert free(place) == room
    assert list((place / "blobs" / "incoming").iterdir()) == []
    blobs.put(digest_of(b"x"), 1, [b"x"])


def test_verifying_needs_room_and_says_nothing_where_there_is_none(
    host: Host, tmp_path: Path, small: Callable[[int], Path]
) -> None:
    """A tree that cannot be compared is not damaged."""
    layout, (_, big) = layouts(tmp_path)
    place = small(4096)
    host.root = place / "store"
    host.store = host.restarted()
    variant: Variant = host.register(layout.path, big)
    host.store.prepare(variant, ignore)
    small(2048)
    refusal = refused(lambda: host.store.verify(variant.content_key, lambda _: None))
    assert refusal is not None
    assert refusal.reason is Reason.NO_SPACE
    assert {"needed", "free"} <= set(refusal.details)
    assert host.store.held() == (variant.content_key,)
    small(4096)
    host.store.verify(variant.content_key, lambda _: None)
