"""A running sandbox's root, as the host may safely use it: every path is resolved by the kernel inside that root.

What runs in the sandbox is hostile and works on the same tree at the same time. So a path is resolved once, to a
handle that opens nothing (`O_PATH`); what the handle is, and on which file system, is judged on the handle; only
then is the same thing opened for real. `/proc`, `/sys` and control groups are never opened: their files act.
"""

import errno
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from sandbay.domain.command import ID_LIMIT, WORKSPACE
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine import linux

_RESOLVE = linux.RESOLVE_IN_ROOT | linux.RESOLVE_NO_MAGICLINKS
_ACTING = frozenset({0x9FA0, 0x62656572, linux.CGROUP_V1_MAGIC, linux.CGROUP2_MAGIC})
"""Magic numbers of proc, sysfs and both control group file systems."""
_TRIES = 100
_PASSWD_LIMIT = 1024 * 1024


class SandboxRoot:
    """`base` is the host id of the sandbox's user 0. Close it, or use it as a context manager."""

    def __init__(self, folder: Path, base: int) -> None:
        """Hold the folder: `/proc/<pid>/root`, or a root file system that nothing runs on yet."""
        self._base = base
        self.fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def handle(self, path: str, *, follow: bool = True, folder: bool = False) -> int:
        """An `O_PATH` descriptor of what is at an absolute path, links followed inside the root."""
        flags = os.O_PATH | (0 if follow else os.O_NOFOLLOW) | (os.O_DIRECTORY if folder else 0)
        for _ in range(_TRIES):
            try:
                return linux.openat2(self.fd, path, flags, resolve=_RESOLVE)
            except OSError as error:
                # The kernel could not tell whether a rename meanwhile led outside; it asks to try again.
                if error.errno not in (errno.EAGAIN, errno.EINTR):
                    raise
        raise RefusedError(Reason.PATH_INVALID, "the path keeps changing", param="path", details={"path": path})

    @contextmanager
    def held(self, path: str, *, follow: bool = True, folder: bool = False) -> Iterator[int]:
        """`handle`, closed at the end."""
        fd = self.handle(path, follow=follow, folder=folder)
        try:
            yield fd
        finally:
            os.close(fd)

    def read_small(self, path: str, limit: int = _PASSWD_LIMIT) -> bytes:
        """The start of a regular file; nothing when there is none. Never blocks, never more than `limit` bytes."""
        try:
            with self.held(path) as handle:
                fd = open_regular(handle)
        except (OSError, RefusedError):
            return b""
        with os.fdopen(fd, "rb") as file:
            return file.read(limit)

    def refuse_endless(self, *paths: str) -> None:
        """Refuse files that the runtime would read at each start, where reading them would not end or take long."""
        for path in paths:
            try:
                with self.held(path) as handle:
                    status = os.fstat(handle)
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or status.st_size > _PASSWD_LIMIT:
                message = f"the sandbox's {path} is no regular file, or larger than {_PASSWD_LIMIT} bytes"
                raise RefusedError(Reason.START_FAILED, message, details={"path": path, "size": status.st_size})

    def refuse_unfit(self, mount_points: Sequence[str], files: Sequence[str]) -> None:
        """Refuse with `not_an_image` a tree that no host could start, for what the image has at these paths."""
        for path in mount_points:
            with suppress(FileNotFoundError), self.held(path, follow=False) as handle:
                if not stat.S_ISDIR(os.fstat(handle).st_mode):
                    raise _unfit(f"its {path} is no folder", {"path": path})
        try:
            self.refuse_endless(*files)
        except RefusedError as error:
            raise _unfit(error.refusal.message, error.refusal.details) from error

    def make_folders(self, path: str, uid: int, gid: int) -> None:
        """Make a folder and its missing parents, 0755, owned by ids of the sandbox.

        Raises `NotADirectoryError` where something else is in the way.
        """
        here = "/"
        for name in [part for part in path.split("/") if part]:
            parent, here = here, posixpath.join(here, name)
            try:
                os.close(self.handle(here, folder=True))
            except FileNotFoundError:
                self._make_folder(parent, name, uid, gid)

    def give_top(self, uid: int, gid: int) -> None:
        """Give the root folder itself to ids of the sandbox."""
        os.chown("/proc/self/fd/" + str(self.fd), self._base + uid, self._base + gid)

    def own(self, fd: int, uid: int, gid: int) -> None:
        """Give what an ordinary descriptor stands for to ids of the sandbox."""
        os.fchown(fd, self._base + uid, self._base + gid)

    def id_inside(self, host_id: int) -> int:
        """A host id as the sandbox sees it; what it does not map is nobody."""
        inside = host_id - self._base
        return inside if 0 <= inside < ID_LIMIT else ID_LIMIT - 2

    def _make_folder(self, parent: str, name: str, uid: int, gid: int) -> None:
        with self.held(parent, folder=True) as above:
            if name in (".", "..") or linux.file_system_magic(above) in _ACTING:
                raise NotADirectoryError(errno.ENOTDIR, "no folder can be made here")
            try:
                os.mkdir(name, 0o700, dir_fd=above)
            except FileExistsError:
                # A link that leads nowhere, or somebody was faster; the next look tells.
                os.close(linux.openat2(above, name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))
                return
            made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            self.own(made, uid, gid)
            os.fchmod(made, 0o755)
        finally:
            os.close(made)


def open_regular(handle: int) -> int:
    """Open for reading what an `O_PATH` handle stands for, if it is a regular file of a file system that stores."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise RefusedError(Reason.PATH_INVALID, "it is not a regular file", param="path")
    return _reopen(handle, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)


def open_folder(handle: int) -> int:
    """Open for listing the folder that an `O_PATH` handle stands for."""
    return _reopen(handle, os.O_RDONLY | os.O_DIRECTORY)


def refuse_acting(handle: int) -> None:
    """Refuse what lies on a file system whose files act rather than store."""
    if linux.file_system_magic(handle) in _ACTING:
        raise RefusedError(Reason.PATH_INVALID, "files of the kernel are not served", param="path")


def _reopen(handle: int, flags: int) -> int:
    refuse_acting(handle)
    return os.open(f"/proc/self/fd/{handle}", flags | os.O_CLOEXEC)


def absolute(path: str) -> str:
    """A path of a request; a relative one starts at the workspace. Refuses what no path can hold."""
    if not path or "\0" in path:
        raise RefusedError(Reason.PATH_INVALID, "the path is empty or has a NUL byte", param="path")
    return posixpath.join(WORKSPACE, path)


def _unfit(why: str, facts: Mapping[str, object]) -> RefusedError:
    return RefusedError(Reason.NOT_AN_IMAGE, f"no sandbox can be made of it: {why}", details=facts)
