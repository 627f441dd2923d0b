"""Files that survive a kill at any statement and a loss of power, and the removal of trees made by strangers."""

import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

DAMAGED: tuple[type[Exception], ...] = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(BaseValidationError, ForbiddenExtraKeysError),
)
"""What reading JSON and `canonical.rebuild` raise on bytes that we did not write."""

_TRIES, _PAUSE = 200, 0.02
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def room(folder: Path | None = None, needed: int | None = None) -> Iterator[None]:
    """Turn a full disk into `no_space`; with the folder's file system and the bytes that are needed where known."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        if folder is None or needed is None:
            raise RefusedError(Reason.NO_SPACE, "the disk is full") from error
        raise no_space(needed, free_bytes(folder)) from error


def free_bytes(folder: Path) -> int:
    """Bytes that its file system still takes."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def no_space(needed: int, free: int) -> RefusedError:
    """The refusal of what needs at least so many bytes, where so many are free. That it ran out tells the least."""
    needed = max(needed, free + 1)
    message = f"the disk is full: at least {needed} bytes are needed and {free} are free"
    return RefusedError(Reason.NO_SPACE, message, details={"needed": needed, "free": free})


def make_folder(path: Path) -> Path:
    """Make a private folder and its parents; the folder is closed to everybody else either way."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def place(temporary: Path, target: Path) -> None:
    """Give a finished, synced file its name: all of it or nothing, for good."""
    temporary.rename(target)
    sync_folder(target.parent)


def write_file(target: Path, data: bytes, temporary: Path) -> None:
    """Replace a small file. `temporary` is in the same file system and belongs to the caller alone."""
    with room():
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        place(temporary, target)


def remove_file(path: Path) -> None:
    """Remove a file for good; a missing one is fine."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync_folder(path.parent)


def remove_tree(path: Path) -> None:
    """Remove a folder with all below it; a missing one is fine, and so is a file.

    Follows no link, and neither recurses nor holds more than two descriptors however deep the tree is:
    folders are first moved up beside each other. A process that is being killed may still write to it.
    """
    for _ in range(_TRIES):
        try:
            _remove(path)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        sleep(_PAUSE)
    _remove(path)


def _remove(path: Path) -> None:
    if not stat.S_ISDIR(path.lstat().st_mode):
        path.unlink()
        return
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _empty(top)
    finally:
        os.close(top)
    path.rmdir()


def _empty(top: int) -> None:
    fresh = (b".%s-%d" % (secrets.token_hex(8).encode(), number) for number in itertools.count())
    pending = [b"."]
    while pending:
        name = pending.pop()
        here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
        try:
            with os.scandir(here) as entries:
                found = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
            for child, is_folder in found:
                with suppress(FileNotFoundError):
                    if is_folder:
                        moved = next(fresh)
                        os.rename(child, moved, src_dir_fd=here, dst_dir_fd=top)
                        pending.append(moved)
                    else:
                        os.unlink(child, dir_fd=here)
        finally:
            os.close(here)
        if name != b".":
            os.rmdir(name, dir_fd=top)
