"""One layer's entries, turned into a tree that overlayfs can stack. Runs in the unpacker's child.

Whiteouts become device 0:0, opaque markers an attribute: both act on lower layers only, wherever they stand.
No entry may appear twice. Because the tree starts empty, whatever is in the way of an entry came from this
layer, so nothing has to be remembered to notice it.

Device nodes are made as they are. They are dead in a sandbox, since every mount of the store is `nodev`.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine import linux
from sandbay.engine.budget import Budget
from sandbay.engine.limits import exceeded
from sandbay.engine.metadata import is_whiteout, look, make_node, mark_implied_root, set_attributes, show
from sandbay.engine.tar import Entry, Kind, TarReader
from sandbay.engine.tree import Folder, Key, Tree

_WHITEOUT = b".wh."
_OPAQUE = b".wh..wh..opq"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NAME = 255
_LARGE = 1 << 17
"""Bytes of a file that the disk may as well begin to write now: `syncfs` has the less to wait for at the end."""
_SPECIAL_BITS = 0o7000
_MOST_MAJOR, _MOST_MINOR = 1 << 12, 1 << 20


class Extractor:
    """Unpacks one layer into a tree; over its parents if `over` says that the tree has a view of them."""

    def __init__(self, reader: TarReader, tree: Tree, budget: Budget, *, over: bool) -> None:
        """Nothing happens yet."""
        self._reader = reader
        self._tree = tree
        self._budget = budget
        self._over = over
        self._root_described = False
        self._make: dict[Kind, Callable[[Folder, bytes, Entry], None]] = {
            Kind.FILE: self._file,
            Kind.FOLDER: self._folder,
            Kind.HARD_LINK: self._hard_link,
            Kind.SYMLINK: self._symlink,
            Kind.CHARACTER: self._node,
            Kind.BLOCK: self._node,
            Kind.FIFO: self._node,
        }
        self.late: set[tuple[bytes, ...]] = set()
        """(path, target as it stands there) of each hard link to something that is not in this layer."""

    def run(self) -> None:
        """Every entry, then what can only be known at the end. Refuses with a reason of the layer's."""
        for entry in self._reader:
            self._tree.rest()
            self._entry(entry)
        self._tree.settle()
        root = self._tree.root
        if not self._root_described:
            mark_implied_root(root.fd)
            root.mtime_ns, root.changed = 0, True
        self._tree.close()

    def _entry(self, entry: Entry) -> None:
        parts = self._parts(entry.name, Reason.UNSAFE_LAYER_PATH)
        self._budget.owner(entry.uid)
        self._budget.owner(entry.gid)
        if not parts:
            self._describe_root(entry)
            return
        self._budget.entry()
        name = parts[-1]
        if name.startswith(_WHITEOUT):
            self._mark(parts)
            return
        folder = self._tree.resolve(parts[:-1], invent=True)
        folder.changed = True
        self._make[entry.kind](folder, name, entry)

    def _parts(self, name: bytes, reason: Reason) -> Key:
        """A name's parts, none of which leads up. An empty result is the root."""
        parts = tuple(part for part in name.split(b"/") if part and part != b".")
        if not name or b"\0" in name or b".." in parts:
            raise RefusedError(reason, f"{show((name,))} is no path inside the image")
        if len(name) > self._budget.limits.path_bytes or max(map(len, parts), default=0) > _MOST_NAME:
            raise RefusedError(Reason.MALFORMED_LAYER, f"{show((name,))} is too long a path")
        return parts

    def _describe_root(self, entry: Entry) -> None:
        if entry.kind is not Kind.FOLDER:
            raise RefusedError(Reason.UNSAFE_LAYER_PATH, f"a {entry.kind.value} would replace the root")
        if self._root_described:
            raise _duplicate((b".",))
        self._root_described = True
        self._finish_folder(self._tree.root, entry)

    def _mark(self, parts: Key) -> None:
        """A whiteout or an opaque marker."""
        name = parts[-1].removeprefix(_WHITEOUT)
        opaque = parts[-1] == _OPAQUE
        if not opaque and (name in (b"", b".", b"..") or name.startswith(_WHITEOUT)):
            raise RefusedError(Reason.UNSAFE_WHITEOUT, f"{show(parts)} hides no single ordinary name")
        # Over its parents a whiteout that hides nothing leaves nothing. Alone it cannot know.
        folder = self._tree.resolve(parts[:-1], invent=not self._over)
        if folder is None:
            return
        if not opaque:
            self._white_out(folder, name)
        elif not self._over or folder.view is not None:
            self._tree.empty_below(folder)

    def _white_out(self, folder: Folder, name: bytes) -> None:
        if self._over and look(folder.view, name) is None:
            return
        here = look(folder.fd, name)
        key = (*folder.key, name)
        if here is not None and key in self._tree.copied:
            self._tree.copied.discard(key)
            os.unlink(name, dir_fd=folder.fd)
            here = None
        if here is None:
            self._tree.hide_name(folder, name)
        elif stat.S_ISDIR(here.st_mode):
            self._tree.hide_below(self._tree.folder(folder, name))
            if key in self._tree.implied:
                self._tree.replaced.add(key)

    def _make_way(self, folder: Folder, name: bytes) -> bool:
        """Something stands where an entry goes. Only our own marks and copies give way; True if it was a whiteout."""
        key = (*folder.key, name)
        whited_out = is_whiteout(os.lstat(name, dir_fd=folder.fd))
        if not whited_out and key not in self._tree.copied:
            raise _duplicate(key)
        self._tree.copied.discard(key)
        os.unlink(name, dir_fd=folder.fd)
        return whited_out

    def _folder(self, folder: Folder, name: bytes, entry: Entry) -> None:
        whited_out = False
        try:
            os.mkdir(name, 0o700, dir_fd=folder.fd)
        except FileExistsError:
            key = (*folder.key, name)
            if key in self._tree.implied:
                self._tree.implied.discard(key)
            else:
                whited_out = self._make_way(folder, name)
                os.mkdir(name, 0o700, dir_fd=folder.fd)
        made = self._tree.folder(folder, name)
        if whited_out:
            self._tree.hide_below(made)
        self._finish_folder(made, entry)

    def _finish_folder(self, folder: Folder, entry: Entry) -> None:
        os.chown(folder.fd, entry.uid, entry.gid)
        os.chmod(folder.fd, entry.mode)
        if entry.xattrs:
            set_attributes(folder.fd, entry.xattrs, self._budget)
        folder.mtime_ns, folder.changed = entry.mtime_ns, True

    def _file(self, folder: Folder, name: bytes, entry: Entry) -> None:
        self._budget.data(entry.size)
        mode = entry.mode & ~_SPECIAL_BITS
        try:
            fd = os.open(name, _CREATE, mode, dir_fd=folder.fd)
        except FileExistsError:
            self._make_way(folder, name)
            fd = os.open(name, _CREATE, mode, dir_fd=folder.fd)
        try:
            self._write(fd, entry)
            if entry.stored >= _LARGE:
                linux.start_writeback(fd)
            os.chown(fd, entry.uid, entry.gid)
            if entry.mode & _SPECIAL_BITS:
                os.chmod(fd, entry.mode)
            if entry.xattrs:
                set_attributes(fd, entry.xattrs, self._budget)
            os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))
        finally:
            os.close(fd)

    def _write(self, fd: int, entry: Entry) -> None:
        if entry.segments is None:
            for piece in self._reader.body():
                _write_all(fd, piece)
            return
        os.truncate(fd, entry.size)
        segments = iter(entry.segments)
        room = 0
        for piece in self._reader.body():
            rest = piece
            while rest:
                while not room:
                    offset, room = next(segments)
                    os.lseek(fd, offset, os.SEEK_SET)
                _write_all(fd, rest[:room])
                room, rest = room - len(rest[:room]), rest[room:]

    def _hard_link(self, folder: Folder, name: bytes, entry: Entry) -> None:
        parts = self._parts(entry.link, Reason.UNSAFE_LINK)
        if not parts:
            raise RefusedError(Reason.UNSAFE_LINK, f"{show((*folder.key, name))} links to the root")
        target = self._link_target(parts)
        if target is None:
            self._missing(folder, name, entry)
            return
        if (target.key, parts[-1]) == (folder.key, name):
            raise RefusedError(Reason.MALFORMED_LAYER, f"{show((*folder.key, name))} is a hard link to itself")
        try:
            self._link(parts[-1], target, name, folder)
        except FileExistsError:
            self._make_way(folder, name)
            self._link(parts[-1], target, name, folder)

    def _link_target(self, parts: Key) -> Folder | None:
        """The folder in which a hard link's target stands; the target itself is never followed."""
        folder = self._tree.resolve(parts[:-1], invent=False)
        if folder is None:
            return None
        here = look(folder.fd, parts[-1])
        if here is None:
            return folder if self._tree.copy_up(folder, parts[-1]) else None
        if stat.S_ISDIR(here.st_mode):
            raise RefusedError(Reason.UNSAFE_LINK, f"a hard link leads to the folder {show(parts)}")
        return None if is_whiteout(here) else folder

    def _missing(self, folder: Folder, name: bytes, entry: Entry) -> None:
        path = b"/".join((*folder.key, name))
        if not self._over:
            self._budget.refer(self.late, (path, entry.link))
            return
        reason = Reason.UNSAFE_LINK if entry.link.startswith(b"/") else Reason.MALFORMED_LAYER
        raise RefusedError(reason, f"{show((path,))} is a hard link to {show((entry.link,))}, which is nowhere")

    def _link(self, target: bytes, at: Folder, name: bytes, folder: Folder) -> None:
        try:
            os.link(target, name, src_dir_fd=at.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            links = os.lstat(target, dir_fd=at.fd).st_nlink
            raise RefusedError.of(exceeded("links of one file", links + 1, links)) from error

    def _symlink(self, folder: Folder, name: bytes, entry: Entry) -> None:
        if not entry.link or b"\0" in entry.link or len(entry.link) > self._budget.limits.path_bytes:
            raise RefusedError(Reason.MALFORMED_LAYER, f"the link {show((*folder.key, name))} leads to no path")
        try:
            os.symlink(entry.link, name, dir_fd=folder.fd)
        except FileExistsError:
            self._make_way(folder, name)
            os.symlink(entry.link, name, dir_fd=folder.fd)
        self._own(folder, name, entry)

    def _node(self, folder: Folder, name: bytes, entry: Entry) -> None:
        major, minor = entry.device
        if entry.kind is Kind.CHARACTER and major == minor == 0:
            raise RefusedError(
                Reason.UNSAFE_DEVICE, f"{show((*folder.key, name))} is device 0:0, a whiteout of overlayfs"
            )
        if major >= _MOST_MAJOR or minor >= _MOST_MINOR:
            raise RefusedError(Reason.MALFORMED_LAYER, f"there is no device {major}:{minor}")
        kind, device = _NODES[entry.kind], os.makedev(major, minor)
        try:
            make_node(folder.fd, name, kind | 0o600, device)
        except FileExistsError:
            self._make_way(folder, name)
            make_node(folder.fd, name, kind | 0o600, device)
        self._own(folder, name, entry)
        os.chmod(name, entry.mode, dir_fd=folder.fd)
        os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=folder.fd, follow_symlinks=False)

    def _own(self, folder: Folder, name: bytes, entry: Entry) -> None:
        os.chown(name, entry.uid, entry.gid, dir_fd=folder.fd, follow_symlinks=False)
        os.utime(name, ns=(entry.mtime_ns, entry.mtime_ns), dir_fd=folder.fd, follow_symlinks=False)


def _duplicate(key: Iterable[bytes]) -> RefusedError:
    return RefusedError(Reason.MALFORMED_LAYER, f"duplicate path {show(tuple(key))}")


def _write_all(fd: int, piece: memoryview) -> None:
    while piece:
        piece = piece[os.write(fd, piece) :]


_NODES = {Kind.CHARACTER: stat.S_IFCHR, Kind.BLOCK: stat.S_IFBLK, Kind.FIFO: stat.S_IFIFO}
