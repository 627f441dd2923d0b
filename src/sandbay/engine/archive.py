"""An uploaded tar as a set of named files, read where it lies: nothing is extracted.

Names and links never lead out of the archive. Links are not followed unless the reader of a format asks for it.
"""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.manifest import check_limit
from sandbay.engine.tar import Entry, Kind, TarError, TarLimitError, TarReader

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_HOPS = 8
_LINKS = frozenset({Kind.SYMLINK, Kind.HARD_LINK})
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}

Stretch = tuple[int, int]
"""Offset and size of a member's bytes in the archive."""


class Archive:
    """One tar file. Whatever is opened from it ends with it."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        """Read the whole archive's headers. Refuses with `malformed_archive` or `limit_exceeded`."""
        self._file = path.open("rb", buffering=0)
        self.entries: dict[bytes, Entry] = {}
        """Every member by its name, without what means nothing in it."""
        try:
            self._check_plain()
            self._index(limits or Limits())
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Let go of the archive."""
        self._file.close()

    @property
    def has_links(self) -> bool:
        """Whether there is a link in it, wherever it leads."""
        return any(entry.kind in _LINKS for entry in self.entries.values())

    def find(self, name: str, *, follow: bool = False) -> Stretch | None:
        """Where a member's bytes are, or None when there is no such file.

        With `follow`, links are followed inside the archive; one that leads out is `malformed_archive`.
        """
        here = _parts(name.encode("utf-8", "surrogateescape"))
        for _ in range(_HOPS):
            key = b"/".join(here)
            entry = self.entries.get(key)
            if entry is None or entry.kind is Kind.FILE:
                return None if entry is None else (entry.data_at, entry.stored)
            if entry.kind not in _LINKS or not follow:
                return None
            here = _target(here, entry)
        raise malformed("links in it lead to links too often")

    def open(self, stretch: Stretch) -> BinaryIO:
        """Read a member's bytes."""
        return cast("BinaryIO", io.BufferedReader(_Window(self._file.fileno(), *stretch)))

    def _check_plain(self) -> None:
        start = os.pread(self._file.fileno(), 6, 0)
        for magic, name in _PACKED.items():
            if start.startswith(magic):
                raise malformed(f"it is packed with {name}; unpack it and upload the tar inside")

    def _index(self, limits: Limits) -> None:
        try:
            for entry in TarReader(lambda view: self._file.readinto(view) or 0, limits):
                check_limit("archive_members", len(self.entries) + 1, limits.archive_members)
                name = _inside(entry)
                if name in self.entries:
                    raise malformed("a member stands there twice")
                self.entries[name] = entry
        except TarLimitError as error:
            raise RefusedError.of(exceeded(error.limit, error.value, error.bound)) from None
        except TarError as error:
            raise malformed(str(error)) from None


class _Window(io.RawIOBase):
    """A stretch of a file, without a position that others share."""

    def __init__(self, fd: int, offset: int, size: int) -> None:
        self._fd, self._at, self._end = fd, offset, offset + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")[: self._end - self._at]
        count = os.preadv(self._fd, [view], self._at) if view else 0
        self._at += count
        return count


def malformed(why: str) -> RefusedError:
    """The refusal of an archive that cannot be read."""
    return RefusedError(Reason.MALFORMED_ARCHIVE, f"the archive cannot be read: {why}")


def _parts(name: bytes) -> list[bytes]:
    return [part for part in name.split(b"/") if part not in (b"", b".")]


def _inside(entry: Entry) -> bytes:
    """The member's name without what means nothing. Refuses names that lead out, and special files."""
    parts = _parts(entry.name)
    if entry.name.startswith(b"/") or b".." in parts or b"\0" in entry.name:
        raise malformed("a member's name leads out of it")
    if entry.kind not in (Kind.FILE, Kind.FOLDER, *_LINKS) or entry.segments is not None:
        raise malformed("a member is neither a plain file nor a folder")
    return b"/".join(parts)


def _target(here: list[bytes], link: Entry) -> list[bytes]:
    """Where a link leads: a symbolic one from its own folder, a hard one from the archive's root."""
    if link.link.startswith(b"/") or b"\0" in link.link:
        raise malformed("a link in it leads out of it")
    there = here[:-1] if link.kind is Kind.SYMLINK else []
    for part in _parts(link.link):
        if part != b"..":
            there = [*there, part]
        elif there:
            there = there[:-1]
        else:
            raise malformed("a link in it leads out of it")
    return there
