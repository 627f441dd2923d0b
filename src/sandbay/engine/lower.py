"""Whether a layer's tree stands by itself, or would be another one over its lower layers.

A tree is keyed by diff id and shared as long as the answer is no. It is asked of the lists that the unpacker
returns, and of the lower trees as overlayfs would stack them.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from sandbay.engine import linux
from sandbay.engine.metadata import PLAIN_MODE, is_opaque, is_whiteout


@dataclass(frozen=True, slots=True)
class Needs:
    """What of a layer depends on lower layers; as in `unpack.Unpacked`, and kept in the layer's record."""

    implied: tuple[str, ...] = ()
    late: tuple[tuple[str, str], ...] = ()
    whiteouts: tuple[str, ...] = ()


def needs_lower_view(needs: Needs, lowers: Sequence[Path]) -> bool:
    """Whether the layer has to be unpacked again over `lowers`, trees, topmost first.

    It has to when a hard link leads out of it; when a folder that it only implies is something particular below;
    and when a whiteout stands in a folder that only this layer has, since overlayfs would then list its name.
    """
    if needs.late:
        return True
    with _Lowers(lowers) as below:
        particular = any(not below.is_plain(os.fsencode(path)) for path in needs.implied)
        return particular or any(not below.has_folder(os.fsencode(path)) for path in needs.whiteouts)


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands at a path of the merged lower layers: which of them show a folder there, and what the topmost is."""

    folders: tuple[int, ...] = ()
    plain: bool = True


class _Lowers:
    """Lower trees, read as overlayfs would merge them. They are hostile: the kernel follows no link in them for us."""

    def __init__(self, trees: Sequence[Path]) -> None:
        """Nothing is opened yet."""
        self._trees = trees
        self._roots: list[int] = []
        self._places: dict[bytes, _Place] = {}

    def __enter__(self) -> Self:
        for tree in self._trees:
            self._roots.append(os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
        self._places[b""] = _Place(tuple(self._roots))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for root in self._roots:
            os.close(root)

    def is_plain(self, path: bytes) -> bool:
        """Whether nothing is there, or a folder as we would make it ourselves."""
        return self._place(path).plain

    def has_folder(self, path: bytes) -> bool:
        """Whether a folder is there."""
        return bool(self._place(path).folders)

    def _place(self, path: bytes) -> _Place:
        missing = [path]
        while missing[-1] not in self._places:
            missing.append(missing[-1].rpartition(b"/")[0])
        for step in reversed(missing[:-1]):
            self._places[step] = self._look(step, self._places[step.rpartition(b"/")[0]])
        return self._places[path]

    def _look(self, path: bytes, parent: _Place) -> _Place:
        folders: list[int] = []
        plain = True
        for root in parent.folders:
            status, attributes, opaque = _read(root, path)
            if status is None:
                continue
            if is_whiteout(status):
                break
            is_folder = stat.S_ISDIR(status.st_mode)
            if not folders:
                root_owned = status.st_uid == status.st_gid == 0
                plain = is_folder and root_owned and not attributes and stat.S_IMODE(status.st_mode) == PLAIN_MODE
            if not is_folder:
                break
            folders.append(root)
            if opaque:
                break
        return _Place(tuple(folders), plain)


def _read(root: int, path: bytes) -> tuple[os.stat_result | None, bool, bool]:
    """What one tree has at a path, whether it has attributes of its own, and whether it is an opaque folder."""
    beneath = linux.RESOLVE_BENEATH | linux.RESOLVE_NO_SYMLINKS | linux.RESOLVE_NO_XDEV
    try:
        found = linux.openat2(root, path, os.O_PATH | os.O_NOFOLLOW, resolve=beneath)
    except FileNotFoundError:
        return None, False, False
    try:
        status = os.fstat(found)
        if not stat.S_ISDIR(status.st_mode):
            return status, False, False
        folder = linux.openat2(found, ".", os.O_RDONLY | os.O_DIRECTORY, resolve=beneath)
    finally:
        os.close(found)
    try:
        attributes = any(not name.startswith("trusted.") for name in os.listxattr(folder))
        return status, attributes, is_opaque(folder)
    finally:
        os.close(folder)
