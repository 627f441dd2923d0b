"""Layers unpacked as a node's store does it, and read back as a sandbox would see them."""

import contextlib
import functools
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sandbay.domain.errors import Refusal
from sandbay.engine import linux, rootfs
from sandbay.engine.limits import Limits
from sandbay.engine.lower import needs_lower_view
from sandbay.engine.unpack import Unpacked, Unpacker

_CHUNK = 64 * 1024


@functools.cache
def _lacking() -> str | None:
    if os.geteuid() != 0:
        return "unpacking needs root"
    why: list[str] = []

    def attempt() -> None:
        try:
            linux.unshare(linux.CLONE_NEWNS)
        except OSError as error:
            why.append(f"no mount namespaces here: {error.strerror}")

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return why[0] if why else None


needs_unpacking = pytest.mark.skipif(_lacking() is not None, reason=str(_lacking()))


def unpack(
    into: Path, layer: bytes, lowers: Sequence[Path] | None = None, limits: Limits | None = None
) -> Unpacked | Refusal:
    """Unpack a plain tar into a new folder."""
    into.mkdir(mode=0o700)
    with Unpacker(into, limits or Limits(), lowers) as unpacker:
        for at in range(0, len(layer), _CHUNK):
            unpacker.feed(layer[at : at + _CHUNK])
        return unpacker.finish()


@dataclass
class Stack:
    """The trees of an image in `folder/l`, the topmost first; made by `add`, from the lowest up."""

    folder: Path
    limits: Limits = field(default_factory=Limits)
    names: list[str] = field(default_factory=list)
    unpacked_again: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("l", "mounts", "upper", "work"):
            (self.folder / name).mkdir()

    @property
    def trees(self) -> list[Path]:
        return [self.folder / "l" / name for name in self.names]

    def add(self, layer: bytes) -> Refusal | None:
        """Unpack the next layer, over the others where it needs them; the refusal if there is one."""
        name = f"t{len(self.names)}"
        alone = self.folder / f"alone{len(self.names)}"
        outcome = unpack(alone, layer, None, self.limits)
        if isinstance(outcome, Refusal):
            return outcome
        again = needs_lower_view(outcome.needs, self.trees)
        self.unpacked_again.append(again)
        if again:
            over = unpack(self.folder / "l" / name, layer, self.trees, self.limits)
            if isinstance(over, Refusal):
                return over
        else:
            alone.rename(self.folder / "l" / name)
        self.names.insert(0, name)
        return None

    @contextlib.contextmanager
    def mounted(self, id_base: int = 0) -> Iterator[Path]:
        """The merged root file system, writable."""
        mounts, upper, work = (self.folder / name for name in ("mounts", "upper", "work"))
        try:
            yield rootfs.assemble(self.folder / "l", self.names, mounts=mounts, upper=upper, work=work, id_base=id_base)
        finally:
            rootfs.dismantle(mounts)


@dataclass(frozen=True)
class Seen:
    """What stands at a path."""

    kind: str
    mode: int
    owner: tuple[int, int]
    content: bytes = b""
    mtime: int | None = None


_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFCHR: "char",
    stat.S_IFBLK: "block",
    stat.S_IFIFO: "fifo",
}


def look(path: Path, *, mtime: bool = False) -> Seen:
    """Read one path, its last link not followed."""
    status = path.lstat()
    kind = _KINDS[stat.S_IFMT(status.st_mode)]
    content = path.read_bytes() if kind == "file" else os.fsencode(path.readlink()) if kind == "link" else b""
    when = status.st_mtime_ns if mtime else None
    return Seen(kind, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), content, when)


def tree_of(root: Path, *, mtime: bool = False) -> dict[str, Seen]:
    """Everything below a folder, by path. Fails on a name that is listed and is not there."""
    seen = {}
    for at, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(at, name)
            seen[str(path.relative_to(root))] = look(path, mtime=mtime)
    return seen
