"""A local archive on its way to an installation: what is in it is for the installation to judge."""

import os
import pathlib
import stat
from collections.abc import Iterator

from sandbay.sdk.errors import ContentError

_CHUNK = 1024 * 1024


class ArchiveFile:
    """The bytes of one file. `size` is exact; each iteration reads it anew.

    Raises `ContentError` (malformed_archive) when it is no file, or changes while it is read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = pathlib.Path(path)
        try:
            seen = self._path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _malformed(f"there is no {self._path}", self._path) from error
        if not stat.S_ISREG(seen.st_mode):
            raise _malformed(f"{self._path} is no file", self._path)
        self.size = seen.st_size

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                done += len(chunk)
                if done > self.size:
                    break
                yield chunk
        if done != self.size:
            raise _malformed(f"{self._path} changed while it was read", self._path)


def split_archive_tag(text: str) -> tuple[str, str | None]:
    """`FILE` or `FILE:TAG`, as the command line takes it. A tag may hold `:`; the longest name of a file wins."""
    ends = [len(text), *(at for at in range(len(text) - 1, 0, -1) if text[at] == ":")]
    for end in ends:
        if pathlib.Path(text[:end]).is_file():
            return text[:end], text[end + 1 :] or None
    return text, None


def _malformed(message: str, path: pathlib.Path) -> ContentError:
    return ContentError(message, code="malformed_archive", details={"path": str(path)})
