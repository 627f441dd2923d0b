"""Owners, modes, attributes, times and the marks of overlayfs, on descriptors. Runs in the unpacker's child."""

import errno
import os
import stat
from collections.abc import Mapping

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.budget import Budget

PLAIN_MODE = 0o755

_OPAQUE = b"trusted.overlay.opaque"
_IMPLIED_ROOT = b"trusted.sandbay.implied"
_CAPABILITY = b"security.capability"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY = 1 << 20
# What the file system itself needs beside each attribute's name and value.
_ATTRIBUTE_OVERHEAD = 32


def look(folder: int | None, name: bytes) -> os.stat_result | None:
    """What stands at a name, or None."""
    if folder is None:
        return None
    try:
        return os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None


def is_whiteout(status: os.stat_result) -> bool:
    """Whether this is how overlayfs spells a whiteout."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(fd: int) -> bool:
    """Whether this folder hides what the layers below have in it."""
    return _attribute(fd, _OPAQUE) == b"y"


def is_implied_root(fd: int) -> bool:
    """Whether this root of a layer is one that no entry describes, so that a lower layer's counts."""
    return _attribute(fd, _IMPLIED_ROOT) is not None


def _attribute(fd: int, name: bytes) -> bytes | None:
    try:
        return os.getxattr(fd, name)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return None
        raise


def mark_opaque(fd: int) -> None:
    """Make a folder opaque."""
    os.setxattr(fd, _OPAQUE, b"y")


def make_plain(fd: int) -> None:
    """What a folder is that nothing describes."""
    os.chown(fd, 0, 0)
    os.chmod(fd, PLAIN_MODE)


def mark_implied_root(fd: int) -> None:
    """Make a root one that no entry describes."""
    make_plain(fd)
    os.setxattr(fd, _IMPLIED_ROOT, b"y")


def whiteout(folder: int, name: bytes) -> None:
    """Make a whiteout."""
    make_node(folder, name, stat.S_IFCHR, 0)


def make_node(folder: int, name: bytes, mode: int, device: int) -> None:
    """`mknod`. Where it is not allowed, the host is at fault and not the image."""
    try:
        os.mknod(name, mode, device, dir_fd=folder)
    except PermissionError as error:
        raise RefusedError(
            Reason.HOST_UNFIT, "this host does not let us make device nodes, which layers need"
        ) from error


def set_attributes(fd: int, attributes: Mapping[bytes, bytes], budget: Budget) -> None:
    """Keep file capabilities and `user.*`; whatever steers the host, its overlay or its policy is dropped.

    Capabilities stay as the image has them: the id-mapped mount translates them as it does owners.
    """
    kept = {name: value for name, value in attributes.items() if _is_kept(name)}
    budget.attributes(sum(len(name) + len(value) + _ATTRIBUTE_OVERHEAD for name, value in kept.items()))
    for name, value in kept.items():
        try:
            os.setxattr(fd, name, value)
        except OSError as error:
            if error.errno == errno.ENOTSUP:
                raise RefusedError(Reason.HOST_UNFIT, f"the store's file system has no {name!r} attributes") from error
            if error.errno in (errno.EINVAL, errno.ERANGE, errno.E2BIG):
                raise RefusedError(Reason.MALFORMED_LAYER, f"attribute {name[:80]!r} is not valid") from error
            raise


def _is_kept(name: bytes) -> bool:
    return name == _CAPABILITY or (name.startswith(b"user.") and not name.startswith(b"user.overlay."))


def copy_metadata(source: int, target: int) -> None:
    """Owner, then mode, then attributes: each clears some of what comes after it."""
    status = os.fstat(source)
    os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, stat.S_IMODE(status.st_mode))
    for name in os.listxattr(source):
        if _is_kept(os.fsencode(name)):
            os.setxattr(target, name, os.getxattr(source, name))


def copy_file(source: int, target: int, name: bytes, status: os.stat_result) -> None:
    """Copy what is no folder from one folder to another, with everything that belongs to it."""
    if stat.S_ISREG(status.st_mode):
        _copy_data(source, target, name)
    elif stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)
    else:
        make_node(target, name, status.st_mode, status.st_rdev)
        os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)
        os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=target)
    os.utime(name, ns=(status.st_mtime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def _copy_data(source: int, target: int, name: bytes) -> None:
    read = os.open(name, _READ, dir_fd=source)
    try:
        write = os.open(name, _CREATE, 0o600, dir_fd=target)
        try:
            while os.sendfile(write, read, None, _COPY):
                pass
            copy_metadata(read, write)
        finally:
            os.close(write)
    finally:
        os.close(read)


def show(parts: tuple[bytes, ...]) -> str:
    """A path for people, short enough for a message."""
    return repr(b"/".join(parts)[:200])[1:]
