"""A folder to be published as one tar, made while it is sent; and the commit that it stands for.

Links go in as links, wherever they lead: the installation refuses those that lead out.
"""

import os
import pathlib
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from sandbay.sdk.errors import ContentError

_CHUNK = 1024 * 1024
_END = bytes(2 * tarfile.BLOCKSIZE)
_COMMIT = 40


@dataclass(frozen=True, slots=True)
class _Member:
    path: pathlib.Path
    header: bytes
    size: int

    @property
    def padding(self) -> bytes:
        return bytes(-self.size % tarfile.BLOCKSIZE)


class FolderTar:
    """The tar of a folder. `size` is exact, in bytes; each iteration reads the files anew.

    Raises `ContentError` (malformed_archive): no folder, something in it that is neither file, folder nor link, or a
    file that changed meanwhile.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = pathlib.Path(folder)
        if not self._folder.is_dir():
            raise _refused(f"{self._folder} is no folder", self._folder)
        self._members = [self._member(path) for path in sorted(self._folder.rglob("*"))]
        self.size = sum(len(m.header) + m.size + len(m.padding) for m in self._members) + len(_END)

    def __iter__(self) -> Iterator[bytes]:
        for member in self._members:
            yield member.header
            yield from _content(member)
            yield member.padding
        yield _END

    def _member(self, path: pathlib.Path) -> _Member:
        seen = path.lstat()
        info = tarfile.TarInfo(path.relative_to(self._folder).as_posix())
        if stat.S_ISDIR(seen.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISLNK(seen.st_mode):
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)  # noqa: PTH115 - the text as it stands
        elif stat.S_ISREG(seen.st_mode):
            info.size = seen.st_size
        else:
            raise _refused(f"{path} is neither file, folder nor link", path)
        info.mode = stat.S_IMODE(seen.st_mode) & 0o777
        return _Member(path, info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape"), info.size)


def _content(member: _Member) -> Iterator[bytes]:
    if not member.size:
        return
    with os.fdopen(os.open(member.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0) as file:
        left = member.size
        while left:
            chunk = file.read(min(left, _CHUNK))
            if not chunk:
                raise _refused(f"{member.path} changed while it was read", member.path)
            left -= len(chunk)
            yield chunk


def commit_of(folder: str | os.PathLike[str]) -> str | None:
    """The commit whose content the folder is, to the last file; None without git, or when it differs from it."""
    head = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    differs = _git(folder, "status", "--porcelain", "--ignored", "--", ".")
    return head if head is not None and len(head) == _COMMIT and differs == "" else None


def _git(folder: str | os.PathLike[str], *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _refused(message: str, path: pathlib.Path) -> ContentError:
    return ContentError(message, code="malformed_archive", details={"path": str(path)})
