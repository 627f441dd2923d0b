"""The folders of the tree that a layer is unpacked into, reached by descriptors and never by paths.

Runs in the unpacker's child. Links on the way are followed here, inside the tree only; the kernel is never
asked to. When a layer is unpacked over its parents, each folder also knows its place in the view of the lower
layers: what is missing here but stands there is made here first, as it is there.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Literal, overload

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.budget import Budget
from sandbay.engine.metadata import (
    copy_file,
    copy_metadata,
    is_opaque,
    is_whiteout,
    look,
    make_plain,
    mark_opaque,
    show,
    whiteout,
)

Key = tuple[bytes, ...]
"""Where a folder really is: its path from the root, free of links."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
_MOST_OPEN = 200
_MOST_KNOWN = 2000


class Folder:
    """An open folder of the tree. Its time is put back whenever we let go of it."""

    __slots__ = ("changed", "children", "depth", "fd", "mtime_ns", "name", "parent", "view")

    def __init__(self, fd: int, view: int | None, parent: "Folder | None" = None, name: bytes = b"") -> None:
        """Take over both descriptors; `view` is the same folder in the lower layers, if it is there and visible."""
        self.fd = fd
        self.view = view
        self.parent = parent
        self.name = name
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.children: dict[bytes, Folder] = {}
        self.mtime_ns = os.fstat(fd).st_mtime_ns
        self.changed = False

    @property
    def key(self) -> Key:
        """The path from the root."""
        names: list[bytes] = []
        folder = self
        while folder.parent is not None:
            names.append(folder.name)
            folder = folder.parent
        return tuple(reversed(names))

    def opened(self) -> "Iterator[Folder]":
        """This folder and all open ones below."""
        todo = [self]
        while todo:
            folder = todo.pop()
            todo.extend(folder.children.values())
            yield folder

    def let_go(self) -> None:
        """Put the time back and close."""
        if self.changed:
            os.utime(self.fd, ns=(self.mtime_ns, self.mtime_ns))
        os.close(self.fd)
        self.forget_view()

    def forget_view(self) -> None:
        """From now on nothing of the lower layers is visible here."""
        if self.view is not None:
            os.close(self.view)
            self.view = None


class Tree:
    """The tree under one root folder; `view` is the merged root of the lower layers."""

    def __init__(self, root: int, budget: Budget, view: int | None = None) -> None:
        """Take over both descriptors."""
        self.budget = budget
        self.root = Folder(root, view)
        self._opened = 0
        self._known: dict[Key, Folder] = {}
        self.implied: set[Key] = set()
        """Folders that exist only because something stands below them."""
        self.replaced: set[Key] = set()
        """Those among them whose own name is whited out."""
        self.whitened: set[Key] = set()
        """Folders in which a whiteout stands."""
        self.copied: set[Key] = set()
        """Files of lower layers that a hard link brought here."""
        self._emptied: set[Key] = set()
        """Implied folders that were made opaque."""

    def rest(self) -> None:
        """Between entries: keep the number of open folders, and what is remembered, bounded."""
        if self._opened > _MOST_OPEN or len(self._known) > _MOST_KNOWN:
            self.release()

    def release(self) -> None:
        """Let go of every folder but the root."""
        self._known.clear()
        for folder in list(self.root.opened()):
            if folder is not self.root:
                folder.let_go()
        self.root.children.clear()
        self._opened = 0

    def close(self) -> None:
        """Let go of everything; all times are in place afterwards."""
        self.release()
        self.root.let_go()

    def folder(self, parent: Folder, name: bytes) -> Folder:
        """The folder `name` in `parent`, which is there."""
        if (known := parent.children.get(name)) is not None:
            return known
        self.budget.depth(parent.depth + 1)
        fd = os.open(name, _FOLDER, dir_fd=parent.fd)
        view = None
        if parent.view is not None and not is_opaque(fd):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                view = os.open(name, _FOLDER, dir_fd=parent.view)
        parent.children[name] = made = Folder(fd, view, parent, name)
        self._opened += 1
        return made

    def at(self, key: Key) -> Folder:
        """The folder with this key, which is there."""
        folder = self.root
        for name in key:
            folder = self.folder(folder, name)
        return folder

    @overload
    def resolve(self, parts: Key, *, invent: Literal[True]) -> Folder: ...
    @overload
    def resolve(self, parts: Key, *, invent: bool) -> Folder | None: ...
    def resolve(self, parts: Key, *, invent: bool) -> Folder | None:
        """The folder that `parts` lead to, links followed inside the tree.

        What is missing is made, as the lower layers have it; what they have not either is invented as an implied
        folder, or the answer is None.
        """
        if (known := self._known.get(parts)) is not None:
            return known
        folder, todo, links = self.root, list(reversed(parts)), 0
        while todo:
            part = todo.pop()
            if part in (b"", b"."):
                continue
            if part == b"..":
                folder = folder.parent or self.root
                continue
            step = self._step(folder, part, invent=invent)
            if step is None:
                return None
            if isinstance(step, Folder):
                folder = step
                continue
            links += 1
            if links > _MOST_LINKS:
                raise RefusedError(Reason.UNSAFE_LAYER_PATH, f"more than {_MOST_LINKS} links lead to {show(parts)}")
            folder = self.root if step.startswith(b"/") else folder
            todo.extend(reversed(step.split(b"/")))
        self._known[parts] = folder
        return folder

    def _step(self, folder: Folder, name: bytes, *, invent: bool) -> Folder | bytes | None:
        """One step down: a folder, or the text of a link to go on from."""
        if (known := folder.children.get(name)) is not None:
            return known
        here = look(folder.fd, name)
        whited_out = here is not None and is_whiteout(here)
        there, at = (here, folder.fd) if here is not None else (look(folder.view, name), folder.view)
        if there is None or whited_out:
            return self._invent(folder, name, whited_out=whited_out) if invent else None
        if stat.S_ISLNK(there.st_mode):
            return os.readlink(name, dir_fd=at)
        if not stat.S_ISDIR(there.st_mode):
            if not invent:
                return None
            path = show((*folder.key, name))
            raise RefusedError(Reason.MALFORMED_LAYER, f"{path} is no folder, and entries stand below it")
        return self.folder(folder, name) if here is not None else self._imply(folder, name, there)

    def _invent(self, folder: Folder, name: bytes, *, whited_out: bool) -> Folder:
        """A folder that neither this layer nor the lower ones describe, or that this layer cuts off from them."""
        if name.startswith(b".wh."):
            raise RefusedError(Reason.UNSAFE_WHITEOUT, f"{show((*folder.key, name))} is used as a folder")
        if whited_out:
            os.unlink(name, dir_fd=folder.fd)
        made = self._imply(folder, name, None)
        if whited_out:
            self.hide_below(made)
            self.replaced.add(made.key)
        return made

    def _imply(self, folder: Folder, name: bytes, below: os.stat_result | None) -> Folder:
        """Make a folder that no entry has named so far."""
        key = (*folder.key, name)
        if sum(map(len, key)) + len(key) > self.budget.limits.path_bytes:
            raise RefusedError(Reason.MALFORMED_LAYER, f"{show(key)} is too long a path")
        self.budget.refer(self.implied, key)
        self.budget.entry()
        os.mkdir(name, 0o700, dir_fd=folder.fd)
        folder.changed = True
        made = self.folder(folder, name)
        if below is None or made.view is None:
            self._make_plain(made)
        else:
            copy_metadata(made.view, made.fd)
            made.mtime_ns, made.changed = below.st_mtime_ns, True
        return made

    def _make_plain(self, folder: Folder) -> None:
        """Time 0, or the same layer would give another tree each time."""
        make_plain(folder.fd)
        folder.mtime_ns, folder.changed = 0, True

    def hide_below(self, folder: Folder) -> None:
        """Hide everything that the lower layers have in this folder."""
        mark_opaque(folder.fd)
        folder.changed = True
        if folder.view is not None:
            # What was reached through the view stays, but nothing more is found there.
            self._known.clear()
            for below in folder.opened():
                below.forget_view()

    def hide_name(self, folder: Folder, name: bytes) -> None:
        """Make the mark that hides `name` of the lower layers. It is not there yet."""
        self.budget.refer(self.whitened, folder.key)
        whiteout(folder.fd, name)
        folder.changed = True

    def copy_up(self, folder: Folder, name: bytes) -> bool:
        """Bring something that is no folder here from the lower layers, if they have it."""
        below = look(folder.view, name)
        if below is None or folder.view is None:
            return False
        if stat.S_ISDIR(below.st_mode):
            raise RefusedError(Reason.UNSAFE_LINK, f"a hard link leads to the folder {show((*folder.key, name))}")
        self.budget.entry()
        self.budget.data(below.st_size)
        self.budget.refer(self.copied, (*folder.key, name))
        copy_file(folder.view, folder.fd, name, below)
        folder.changed = True
        return True

    def empty_below(self, folder: Folder) -> None:
        """What an opaque marker in a folder asks for."""
        self.hide_below(folder)
        if (key := folder.key) in self.implied:
            self.budget.refer(self._emptied, key)

    def settle(self) -> None:
        """Once the whole layer is known: what its own marks cut off from the lower layers.

        Implied folders that are cut off depend on nothing below, wherever the mark stood: they are plain, and
        where they hold nothing but marks they are not there. Whiteouts that are cut off hide nothing, and
        overlayfs would list them as names with nothing behind.
        """
        for key in sorted(self.implied, reverse=True):
            cut_off = self._cut_off(key[:-1])
            if cut_off or key in self.replaced:
                self.implied.discard(key)
                self._settle_implied(self.at(key), hides=not cut_off)
            self.rest()
        for key in sorted(self.whitened):
            if self._cut_off(key):
                self.whitened.discard(key)
                self._drop_whiteouts(self.at(key))
            self.rest()
        self.whitened.update(key for key in self._emptied & self.implied if self._is_hollow(self.at(key)))

    def _settle_implied(self, folder: Folder, *, hides: bool) -> None:
        if folder.parent is not None and self._is_hollow(folder):
            self.whitened.discard(folder.key)
            self._drop_whiteouts(folder)
            folder.let_go()
            del folder.parent.children[folder.name]
            os.rmdir(folder.name, dir_fd=folder.parent.fd)
            folder.parent.changed = True
            if hides:
                self.hide_name(folder.parent, folder.name)
            return
        for name in os.listxattr(folder.fd):
            if not name.startswith("trusted."):
                os.removexattr(folder.fd, name)
        self._make_plain(folder)

    def _is_hollow(self, folder: Folder) -> bool:
        """Whether it holds nothing, or nothing but whiteouts."""
        return all(is_whiteout(os.lstat(name, dir_fd=folder.fd)) for name in os.listdir(folder.fd))

    def _cut_off(self, key: Key) -> bool:
        """Whether the lower layers show nothing in this folder."""
        folder = self.root
        if is_opaque(folder.fd):
            return True
        for name in key:
            folder = self.folder(folder, name)
            if is_opaque(folder.fd):
                return True
        return False

    def _drop_whiteouts(self, folder: Folder) -> None:
        for name in map(os.fsencode, os.listdir(folder.fd)):
            if is_whiteout(os.lstat(name, dir_fd=folder.fd)):
                os.unlink(name, dir_fd=folder.fd)
                folder.changed = True
