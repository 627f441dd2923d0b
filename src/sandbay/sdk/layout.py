"""An OCI layout folder as one tar, made while it is sent: nothing is held in memory or on disk.

Only what belongs to a layout goes in: `oci-layout`, `index.json` and `blobs/<algorithm>/<hash>`, in this
order, with the same header fields everywhere. Nothing is followed: a link among them is refused.
"""

import errno
import os
import pathlib
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from sandbay.sdk.errors import ContentError

_CHUNK = 1024 * 1024
_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    size: int

    @property
    def header(self) -> bytes:
        info = tarfile.TarInfo(self.name)
        info.size = self.size
        return info.tobuf(tarfile.PAX_FORMAT)

    @property
    def padding(self) -> bytes:
        return bytes(-self.size % _BLOCK)


class LayoutTar:
    """The tar of one layout. `size` is exact, in bytes; each iteration reads the files anew.

    Raises `ContentError`: malformed_layout (not a layout, or it changed meanwhile), unsafe_link.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = pathlib.Path(folder)
        self._members = [*self._documents(), *self._blobs()]
        self.size = sum(len(m.header) + m.size + len(m.padding) for m in self._members) + len(_END)

    def __iter__(self) -> Iterator[bytes]:
        for member in self._members:
            yield member.header
            yield from self._content(member)
            yield member.padding
        yield _END

    def _documents(self) -> Iterator[_Member]:
        for name in ("oci-layout", "index.json"):
            yield self._member(name)

    def _blobs(self) -> Iterator[_Member]:
        for algorithm in self._names("blobs"):
            for encoded in self._names(f"blobs/{algorithm}"):
                yield self._member(f"blobs/{algorithm}/{encoded}")

    def _names(self, name: str) -> list[str]:
        path = self._folder / name
        if path.is_symlink():
            raise _unsafe(name)
        try:
            return sorted(entry.name for entry in path.iterdir())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _malformed(f"{name} is no folder", name) from error

    def _member(self, name: str) -> _Member:
        path = self._folder / name
        try:
            seen = path.lstat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _malformed(f"there is no {name} in the folder", name) from error
        if stat.S_ISLNK(seen.st_mode):
            raise _unsafe(name)
        if not stat.S_ISREG(seen.st_mode):
            raise _malformed(f"{name} is no file", name)
        return _Member(name, seen.st_size)

    def _content(self, member: _Member) -> Iterator[bytes]:
        try:
            handle = os.open(self._folder / member.name, _OPEN)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _unsafe(member.name) from error
            raise
        with os.fdopen(handle, "rb", buffering=0) as file:
            now = os.fstat(handle)
            if not stat.S_ISREG(now.st_mode) or now.st_size != member.size:
                raise _malformed(f"{member.name} changed while it was read", member.name)
            left = member.size
            while left:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    raise _malformed(f"{member.name} changed while it was read", member.name)
                left -= len(chunk)
                yield chunk


def split_tag(text: str) -> tuple[str, str | None]:
    """`DIR` or `DIR:TAG`, as the command line takes it; a folder with a colon in its name wins."""
    folder, colon, tag = text.rpartition(":")
    if not colon or not folder or "/" in tag or pathlib.Path(text).is_dir():
        return text, None
    return folder, tag


def _malformed(message: str, name: str) -> ContentError:
    return ContentError(f"not an OCI layout: {message}", code="malformed_layout", details={"path": name})


def _unsafe(name: str) -> ContentError:
    return ContentError(f"{name} is a link, which is not followed", code="unsafe_link", details={"path": name})
