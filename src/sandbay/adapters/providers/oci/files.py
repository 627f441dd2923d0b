"""The port's `Files` for a running sandbox, through its own root and nothing else."""

import contextlib
import errno
import os
import posixpath
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from typing import BinaryIO, cast

from sandbay.adapters.providers.oci.root import SandboxRoot, absolute, open_folder, open_regular, refuse_acting
from sandbay.domain.command import User
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import FileEntry, FileKind

_KINDS = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.DIRECTORY, stat.S_IFLNK: FileKind.SYMLINK}


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Bounds on one call: bytes of a file, entries of a folder, levels of a removal."""

    file_bytes: int = 1024**3
    entries: int = 100_000
    depth: int = 200


class SandboxFiles:
    """`open_root` gives the sandbox's root, or refuses with `not_running`; new things belong to `user`."""

    def __init__(self, open_root: Callable[[], SandboxRoot], user: User, limits: FileLimits) -> None:
        """Nothing is opened yet: each call looks at the sandbox anew."""
        self._open_root = open_root
        self._user = user
        self._limits = limits

    def stat(self, path: str) -> FileEntry:
        """What is at a path, links not followed at its end."""
        with self._at(path) as (root, whole), root.held(whole, follow=False) as handle:
            return _entry(root, handle, posixpath.basename(whole.rstrip("/")) or "/")

    def list(self, path: str) -> Sequence[FileEntry]:
        """The entries of a folder, by name."""
        with self._at(path) as (root, whole), root.held(whole, folder=True) as handle:
            fd = open_folder(handle)
            try:
                return sorted(self._entries(root, fd), key=lambda entry: entry.name)
            finally:
                os.close(fd)

    def read(self, path: str) -> BinaryIO:
        """A regular file's bytes, at most the limit."""
        with self._at(path) as (root, whole), root.held(whole) as handle:
            self._bound("file_bytes", os.fstat(handle).st_size, self._limits.file_bytes)
            fd = open_regular(handle)
        return cast("BinaryIO", BufferedReader(_Bounded(fd, self._limits.file_bytes)))

    def write(self, path: str, chunks: Iterable[bytes], mode: int | None = None) -> None:
        """Replace a file in one step, under a name of its own until it is whole."""
        with self._parent(path, make=True) as (root, folder, name):
            mode = _mode_before(folder, name) if mode is None else mode & 0o7777
            temporary = f".{secrets.token_hex(8)}.part"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o600, dir_fd=folder)
            try:
                self._fill(root, fd, chunks, mode)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            finally:
                os.close(fd)

    def make_folder(self, path: str) -> None:
        """Make a folder and its missing parents."""
        with self._at(path) as (root, whole):
            root.make_folders(whole, self._user.uid, self._user.gid)

    def move(self, source: str, target: str) -> None:
        """Rename within the sandbox; the target's parents are made."""
        with self._parent(source) as (_, folder, name), self._parent(target, make=True) as (_, into, new_name):
            os.stat(name, dir_fd=folder, follow_symlinks=False)  # of two things that are wrong, say this one
            # Asked first: between two mounts the kernel would not say that there is nothing to move.
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=into)

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder with all below it."""
        with self._parent(path) as (_, folder, name):
            self._remove(folder, name, 0)

    def _remove(self, folder: int, name: str, depth: int) -> None:
        self._bound("depth", depth, self._limits.depth)
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        inner = os.open(name, flags, dir_fd=folder)
        try:
            # Never into another file system: the workspace is emptied by its own path only.
            if os.fstat(inner).st_dev != os.fstat(folder).st_dev:
                raise OSError(errno.EBUSY, "a mount point")
            for child in os.listdir(inner):  # noqa: PTH208 - of a descriptor
                self._remove(inner, child, depth + 1)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=folder)

    def _fill(self, root: SandboxRoot, fd: int, chunks: Iterable[bytes], mode: int) -> None:
        written = 0
        for chunk in chunks:
            written += len(chunk)
            self._bound("file_bytes", written, self._limits.file_bytes)
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
        root.own(fd, self._user.uid, self._user.gid)
        os.fchmod(fd, mode)

    def _entries(self, root: SandboxRoot, fd: int) -> Iterator[FileEntry]:
        for count, name in enumerate(os.listdir(fd), 1):
            self._bound("entries", count, self._limits.entries)
            try:
                handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except FileNotFoundError:
                continue
            try:
                yield _entry(root, handle, name)
            finally:
                os.close(handle)

    @contextmanager
    def _at(self, path: str) -> Iterator[tuple[SandboxRoot, str]]:
        whole = absolute(path)
        with self._open_root() as root, _refusing(path):
            yield root, whole

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[SandboxRoot, int, str]]:
        """The folder that holds a path's last name, by handle, and that name."""
        with self._at(path) as (root, whole):
            above, name = posixpath.split(whole.rstrip("/"))
            if name in ("", ".", ".."):
                raise RefusedError(Reason.PATH_INVALID, "the path names no entry", param="path", details={"path": path})
            if make:
                root.make_folders(above, self._user.uid, self._user.gid)
            with root.held(above, folder=True) as folder:
                refuse_acting(folder)
                yield root, folder, name

    @staticmethod
    def _bound(limit: str, value: int, bound: int) -> None:
        if value > bound:
            facts = {"limit": limit, "value": value, "bound": bound}
            raise RefusedError(Reason.LIMIT_EXCEEDED, f"{limit} is more than the limit of {bound}", details=facts)


class _Bounded(RawIOBase):
    """A descriptor's bytes; one more than the bound is `limit_exceeded`, since a file may grow while it is read."""

    def __init__(self, fd: int, bound: int) -> None:
        self._fd = fd
        self._bound = bound
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = os.readv(self._fd, [buffer])
        self._done += count
        SandboxFiles._bound("file_bytes", self._done, self._bound)  # noqa: SLF001 - one judge of bounds
        return count

    def close(self) -> None:
        if not self.closed:
            os.close(self._fd)
        super().close()


def _entry(root: SandboxRoot, handle: int, name: str) -> FileEntry:
    status = os.fstat(handle)
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), FileKind.OTHER)
    return FileEntry(
        name=name,
        kind=kind,
        size=status.st_size,
        mode=stat.S_IMODE(status.st_mode),
        uid=root.id_inside(status.st_uid),
        gid=root.id_inside(status.st_gid),
        mtime=status.st_mtime,
        target=os.readlink("", dir_fd=handle) if kind is FileKind.SYMLINK else None,
    )


def _mode_before(folder: int, name: str) -> int:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    return stat.S_IMODE(status.st_mode) & 0o777 if stat.S_ISREG(status.st_mode) else 0o644


_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    """Turn what the kernel says of a path into the refusal that it means."""
    facts = {"path": path}
    try:
        yield
    except FileNotFoundError as error:
        raise RefusedError(
            Reason.PATH_NOT_FOUND, "there is nothing at this path", param="path", details=facts
        ) from error
    except OSError as error:
        if error.errno in _FULL:
            raise RefusedError(Reason.NO_SPACE, "the disk is full") from error
        says = os.strerror(error.errno) if error.errno else "it cannot be used"
        raise RefusedError(
            Reason.PATH_INVALID, f"the path cannot be used: {says}", param="path", details=facts
        ) from error
