"""Power goes at every step: what was not synced is gone, and no record says done before its bytes are on the disk.

The store lies on an ext4 in a file. At each step that changes names, and after each sync, the file is copied as it is:
that copy is what the disk would hold, had the power gone then, because what is only in memory is in no copy. Each copy
is mounted, looked at as a node would after the start, and every byte of what it says is whole is compared.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.domain.errors import RefusedError
from sandbay.domain.release import Variant
from sandbay.engine import linux
from sandbay.engine.store import LayerStore
from tests.contracts.blobs_suite import digest_of, pieces, read
from tests.engine.store_support import AMD64, Host, ignore
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file, folder

MKFS, MOUNT, UMOUNT = (shutil.which(name) for name in ("mkfs.ext4", "mount", "umount"))

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a file system from a file"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="this machine has no loop devices"),
    pytest.mark.skipif(MKFS is None, reason="this machine lacks mkfs.ext4 (e2fsprogs)"),
]

CHANGES = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir"})


class Disk:
    """An ext4 in a file, mounted at `place`; `cut` copies what is on it and not in memory."""

    def __init__(self, root: Path) -> None:
        self.root, self.place, self.image = root, root / "disk", root / "disk.img"
        self.place.mkdir(parents=True)
        with self.image.open("wb") as it:
            it.truncate(24 << 20)
        assert MKFS
        subprocess.run([MKFS, "-q", "-E", "nodiscard,lazy_itable_init=0", self.image], check=True)
        self.cuts: list[tuple[str, Path]] = []
        self._lock = threading.Lock()

    def cut(self, step: str) -> None:
        """The power goes here."""
        with self._lock:
            copy = self.root / f"cut-{len(self.cuts)}.img"
            subprocess.run(["cp", "--sparse=always", self.image, copy], check=True)
            self.cuts.append((step, copy))


def mounted(image: Path, place: Path, held: ExitStack) -> Path:
    """The image, its journal replayed, until `held` closes. Nothing is written back by time meanwhile."""
    assert MOUNT
    assert UMOUNT
    place.mkdir(exist_ok=True)
    subprocess.run([MOUNT, "-o", "loop,commit=3600", image, place], check=True)
    held.callback(lambda: subprocess.run([str(UMOUNT), place], check=True))
    return place


HOOKS: list[Callable[[str], None]] = []


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    for hook in HOOKS if event in CHANGES else ():
        hook(f"{event} {Path(os.fsdecode(arguments[0])).name if isinstance(arguments[0], (str, bytes)) else ''}")


@pytest.fixture(scope="session")
def heard() -> None:
    """Audit hooks stay for the process's life: there is one, which hears only while somebody listens."""
    sys.addaudithook(_heard)


@pytest.fixture
def disk(tmp_path: Path, heard: None) -> Iterator[Disk]:
    yield Disk(tmp_path / "power")
    HOOKS.clear()


def lose_power_anywhere(disk: Disk, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do it, and cut before each change of a name, and after each sync."""
    for where, name in ((os, "fsync"), (linux, "syncfs")):
        real = getattr(where, name)

        def synced(fd: int, real: Callable[[int], None] = real, name: str = name) -> None:
            real(fd)
            disk.cut(f"after {name}")

        monkeypatch.setattr(where, name, synced)
    HOOKS.append(lambda step: disk.cut(f"before {step}"))
    act()
    HOOKS.clear()
    disk.cut("at the end")


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    it = Layout(tmp_path / "layout")
    it.image(
        [
            [folder("etc"), *(file(f"etc/{n}", os.urandom(5000)) for n in range(20))],
            [file("large", os.urandom(1 << 20))],
        ],
        platform=AMD64,
    )
    return it.path


def whole_after(disk: Disk, image: Path, variant: Variant, blobs: FolderBlobs) -> bool | str:
    """Whether the variant is held after this cut; what is wrong with it where it is, and is not whole."""
    with ExitStack() as held:
        store = LayerStore(mounted(image, disk.root / "after", held) / "store", blobs)
        store.sweep()
        if variant.content_key not in store.held():
            return False
        try:
            store.verify(variant.content_key, lambda _: None)
        except RefusedError as error:
            return str(error)
    return True


def prepare_and_cut(disk: Disk, host: Host, variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as held:
        place = mounted(disk.image, disk.place, held)
        store = LayerStore(place / "store", host.blobs)
        subprocess.run(["sync", "-f", disk.place], check=True)
        with monkeypatch.context() as patch:
            lose_power_anywhere(disk, patch, lambda: store.prepare(variant, ignore))


def test_no_record_says_done_before_its_bytes_are_durable(
    disk: Disk, layout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    variant = host.register(layout)
    prepare_and_cut(disk, host, variant, monkeypatch)
    seen = {
        f"{at} {step}": whole_after(disk, copy, variant, FolderBlobs(host.folder))
        for at, (step, copy) in enumerate(disk.cuts)
    }
    assert {step: found for step, found in seen.items() if isinstance(found, str)} == {}
    assert seen[next(reversed(seen))] is True, "what is said to be done is there"
    assert next(iter(seen.values())) is False
    assert len(seen) > 15


def test_this_would_see_it(disk: Disk, layout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the one sync that goes before the record, a record does say done too early."""
    host = Host(tmp_path)
    variant = host.register(layout)
    monkeypatch.setattr(linux, "syncfs", lambda _: None)
    prepare_and_cut(disk, host, variant, monkeypatch)
    found = whole_after(disk, disk.cuts[-1][1], variant, FolderBlobs(host.folder))
    assert isinstance(found, str)
    assert "content_lost" in found


@pytest.mark.parametrize("planted", [False, True], ids=["as it is", "without fsync"])
def test_a_blob_is_there_whole_or_not_at_all(disk: Disk, monkeypatch: pytest.MonkeyPatch, *, planted: bool) -> None:
    data = os.urandom(1 << 20)
    digest = digest_of(data)
    with ExitStack() as held:
        blobs = FolderBlobs(mounted(disk.image, disk.place, held) / "blobs")
        subprocess.run(["sync", "-f", disk.place], check=True)
        with monkeypatch.context() as patch:
            if planted:
                patch.setattr(os, "fsync", lambda _: None)
            lose_power_anywhere(disk, patch, lambda: blobs.put(digest, len(data), pieces(data)))
    seen: list[bool | None] = []
    for _, copy in disk.cuts:
        with ExitStack() as held:
            after = FolderBlobs(mounted(copy, disk.root / "after", held) / "blobs")
            seen.append(read(after, digest) == data if after.has(digest) else None)
    assert False not in seen
    assert seen[0] is None
    assert (seen[-1] is True) is not planted, "what put has answered for is there"
