"""A file system in memory: enough of one for the in-memory provider. Links are followed inside its root only."""

import io
import posixpath
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from sandbay.domain.command import WORKSPACE
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import FileEntry, FileKind

_MAX_LINKS = 40


@dataclass
class Entry:
    """A file (`data`), a link (`target`) or a folder (`children`)."""

    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    data: bytes | None = None
    target: str | None = None
    children: "dict[str, Entry] | None" = None

    @property
    def kind(self) -> FileKind:
        if self.children is not None:
            return FileKind.DIRECTORY
        return FileKind.FILE if self.data is not None else FileKind.SYMLINK


def folder(mode: int = 0o755, uid: int = 0, gid: int = 0) -> Entry:
    return Entry(mode, uid, gid, children={})


def not_found(path: str) -> RefusedError:
    return RefusedError(Reason.PATH_NOT_FOUND, "there is nothing at this path", param="path", details={"path": path})


def invalid(path: str, why: str) -> RefusedError:
    return RefusedError(Reason.PATH_INVALID, f"the path cannot be used: {why}", param="path", details={"path": path})


@dataclass
class MemoryFiles:
    """The port's `Files`, and what the simulated programs use. Every method is one step."""

    uid: int = 0
    gid: int = 0
    root: Entry = field(default_factory=folder)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def stat(self, path: str) -> FileEntry:
        with self.lock:
            return _told(posixpath.basename(path.rstrip("/")) or "/", self.find(path, follow=False))

    def list(self, path: str) -> Sequence[FileEntry]:
        with self.lock:
            children = self.find(path).children
            if children is None:
                raise invalid(path, "no folder")
            return [_told(name, children[name]) for name in sorted(children)]

    def read(self, path: str) -> BinaryIO:
        with self.lock:
            data = self.find(path).data
            if data is None:
                raise invalid(path, "no regular file")
            return io.BytesIO(data)

    def write(self, path: str, chunks: Iterable[bytes], mode: int | None = None) -> None:
        data = b"".join(chunks)
        with self.lock:
            parent, name = self._parent(path, make=True)
            before = parent.get(name)
            if before is not None and before.kind is FileKind.DIRECTORY:
                raise invalid(path, "a folder")
            if mode is None:
                mode = before.mode if before is not None and before.data is not None else 0o644
            parent[name] = Entry(mode, self.uid, self.gid, data=data)

    def make_folder(self, path: str) -> None:
        with self.lock:
            if _walk(self.root, _parts(path), path, make=self._new_folder).children is None:
                raise invalid(path, "no folder")

    def move(self, source: str, target: str) -> None:
        with self.lock:
            here, name = self._parent(source)
            if name not in here:
                raise not_found(source)
            there, new_name = self._parent(target, make=True)
            there[new_name] = here.pop(name)

    def remove(self, path: str) -> None:
        with self.lock:
            parent, name = self._parent(path)
            if name not in parent:
                raise not_found(path)
            if posixpath.normpath(posixpath.join(WORKSPACE, path)) == WORKSPACE:
                raise invalid(path, "a mount point")
            del parent[name]

    def link(self, target: str, path: str) -> None:
        with self.lock:
            parent, name = self._parent(path)
            parent[name] = Entry(0o777, self.uid, self.gid, target=target)

    def find(self, path: str, *, follow: bool = True) -> Entry:
        """What is at a path; refuses with `path_not_found`."""
        return _walk(self.root, _parts(path), path, follow=follow)

    def _new_folder(self) -> Entry:
        return folder(0o755, self.uid, self.gid)

    def _parent(self, path: str, *, make: bool = False) -> tuple[dict[str, Entry], str]:
        parts = _parts(path)
        if not parts or parts[-1] in (".", ".."):
            raise invalid(path, "it names no entry")
        children = _walk(self.root, parts[:-1], path, make=self._new_folder if make else None).children
        if children is None:
            raise invalid(path, "no folder")
        return children, parts[-1]


def _parts(path: str) -> list[str]:
    if "\0" in path or not path:
        raise invalid(path, "no path")
    return [part for part in posixpath.join(WORKSPACE, path).split("/") if part]


def _told(name: str, entry: Entry) -> FileEntry:
    size = len(entry.data if entry.data is not None else entry.target or "")
    return FileEntry(name, entry.kind, size, entry.mode, entry.uid, entry.gid, 0.0, entry.target)


def _walk(
    root: Entry, parts: list[str], path: str, *, follow: bool = True, make: Callable[[], Entry] | None = None
) -> Entry:
    """The entry at the path's end. `..` of the root is the root, as after chroot. Missing ones are made, or refused."""
    trail, todo, links = [root], parts[::-1], 0
    while todo:
        part, here = todo.pop(), trail[-1]
        if part == ".":
            continue
        if part == "..":
            trail = trail[: max(1, len(trail) - 1)]
            continue
        if here.children is None:
            raise invalid(path, "a part of it is no folder")
        if part not in here.children:
            if make is None:
                raise not_found(path)
            here.children[part] = make()
        entry = here.children[part]
        if entry.target is None or not (todo or follow):
            trail.append(entry)
            continue
        links += 1
        if links > _MAX_LINKS:
            raise invalid(path, "too many links")
        trail = trail[:1] if entry.target.startswith("/") else trail
        todo += [p for p in entry.target.split("/") if p][::-1]
    return trail[-1]
