"""Two trees, name by name and byte by byte: whether what lies in the store is still what its layer unpacks to.

Neither is trusted: no link is followed, and a path is only ever shown as it is inside the image.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbay.engine.metadata import is_whiteout, show

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE = 1 << 20

Key = tuple[bytes, ...]


def first_difference(stored: Path, fresh: Path) -> str | None:
    """Where and how `stored` is another tree than `fresh`, for people; None when it is the same one.

    What is compared: names, kinds, owners, modes, times, attributes, link targets, which names are one file, and
    contents. Stored files are read from the disk and not from memory, as far as nobody else has them in use.
    """
    try:
        with _opened(os.fspath(stored), None) as mine, _opened(os.fspath(fresh), None) as other:
            return _Comparison().folders(mine, other, ())
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


class _Comparison:
    def __init__(self) -> None:
        self._twins: dict[int, int] = {}
        """Of files with several names: the inode of the stored one → that of the fresh one."""
        self._buffers = (memoryview(bytearray(_PIECE)), memoryview(bytearray(_PIECE)))

    def folders(self, stored: int, fresh: int, at: Key) -> str | None:
        """Two open folders with all below; limits keep trees shallow enough for this."""
        wrong = _metadata(os.fstat(stored), os.fstat(fresh)) or _attributes(stored, fresh)
        if wrong is not None:
            return f"{show(at or (b'/',))}: {wrong}"
        names = sorted(map(os.fsencode, os.listdir(fresh)))
        found = set(map(os.fsencode, os.listdir(stored)))
        if found != set(names):
            name = min(found ^ set(names))
            return f"{show((*at, name))}: {'it is gone' if name in names else 'it does not belong there'}"
        return next((wrong for name in names if (wrong := self._entry(stored, fresh, (*at, name)))), None)

    def _entry(self, stored: int, fresh: int, at: Key) -> str | None:
        name = at[-1]
        status, wanted = (os.lstat(name, dir_fd=folder) for folder in (stored, fresh))
        if stat.S_ISDIR(status.st_mode) and stat.S_ISDIR(wanted.st_mode):
            with _opened(name, stored) as inner, _opened(name, fresh) as other:
                return self.folders(inner, other, at)
        wrong = _metadata(status, wanted)
        if wrong is None and status.st_nlink > 1:
            same = self._twins.setdefault(status.st_ino, wanted.st_ino) == wanted.st_ino
            wrong = None if same else "it is one file with another name"
        if wrong is None and stat.S_ISLNK(status.st_mode):
            same = os.readlink(name, dir_fd=stored) == os.readlink(name, dir_fd=fresh)
            wrong = None if same else "it leads elsewhere"
        if wrong is None and stat.S_ISREG(status.st_mode):
            wrong = self._files(name, stored, fresh)
        return None if wrong is None else f"{show(at)}: {wrong}"

    def _files(self, name: bytes, stored: int, fresh: int) -> str | None:
        with _opened(name, stored, _FILE) as mine, _opened(name, fresh, _FILE) as other:
            wrong = _attributes(mine, other)
            if wrong is not None:
                return wrong
            # What memory still has says nothing about the disk.
            os.posix_fadvise(mine, 0, 0, os.POSIX_FADV_DONTNEED)
            return self._contents(mine, other)

    def _contents(self, stored: int, fresh: int) -> str | None:
        mine, other = self._buffers
        while True:
            read, wanted = _fill(stored, mine), _fill(fresh, other)
            if mine[:read] != other[:wanted]:
                return "its content changed"
            if not read:
                return None


def _metadata(status: os.stat_result, wanted: os.stat_result) -> str | None:
    """What a file is apart from its content. Sizes of folders are their file system's business."""
    compared = {
        "kind": (stat.S_IFMT(status.st_mode), stat.S_IFMT(wanted.st_mode)),
        "mode": (stat.S_IMODE(status.st_mode), stat.S_IMODE(wanted.st_mode)),
        "owner": ((status.st_uid, status.st_gid), (wanted.st_uid, wanted.st_gid)),
        "device": (status.st_rdev, wanted.st_rdev),
        "size": (0, 0) if stat.S_ISDIR(wanted.st_mode) else (status.st_size, wanted.st_size),
        "links": (0, 0) if stat.S_ISDIR(wanted.st_mode) else (status.st_nlink, wanted.st_nlink),
        # A whiteout is ours, and has the time at which it was made.
        "time": (0, 0) if is_whiteout(wanted) else (status.st_mtime_ns, wanted.st_mtime_ns),
    }
    wrong = [what for what, (now, then) in compared.items() if now != then]
    return f"its {wrong[0]} changed" if wrong else None


def _attributes(stored: int, fresh: int) -> str | None:
    mine, other = ({name: os.getxattr(fd, name) for name in os.listxattr(fd)} for fd in (stored, fresh))
    return None if mine == other else "its attributes changed"


def _fill(fd: int, buffer: memoryview) -> int:
    """Read until the buffer is full or the file has ended."""
    at = 0
    while at < len(buffer) and (count := os.readv(fd, [buffer[at:]])):
        at += count
    return at


@contextmanager
def _opened(name: str | bytes, folder: int | None, flags: int = _FOLDER) -> Iterator[int]:
    fd = os.open(name, flags, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)
