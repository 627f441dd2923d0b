"""An OCI layout as an image source: a folder, or an uploaded tar of one that is read where it lies.

    LayoutSource(lambda: FolderTree(path))
    LayoutSource(lambda: ArchiveTree(path))

Names inside are the layout's own (`oci-layout`, `index.json`, `blobs/<algorithm>/<hex>`), never names that the
content chooses, and no link is followed.
"""

import errno
import io
import os
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.digest import hex_of
from sandbay.engine.documents import read_document
from sandbay.engine.intake import take_in
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.manifest import IndexEntry, check_limit, parse_index
from sandbay.engine.tar import Entry, Kind, TarError, TarLimitError, TarReader
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import Progress, Wanted

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_VERSION = "1.0.0"
_VERSION_BYTES = 4096
# What open says of a link, of something else where a folder should be, and of a socket.
_NO_FILE = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENXIO})


class Tree(Protocol):
    """The files of a layout, by their names inside it."""

    def open(self, name: str) -> BinaryIO | None:
        """A regular file's bytes, or None when there is no such file. Refuses what is no regular file."""

    def size(self, name: str) -> int | None:
        """Bytes of a regular file, or None when there is no such file."""

    def close(self) -> None:
        """Let go of the layout."""


class LayoutSource:
    """The port `image_source` over a layout: `LayoutSource(lambda: FolderTree(path))`."""

    def __init__(self, tree: Callable[[], Tree], limits: Limits | None = None) -> None:
        """Take how to open the tree, which every `read` does afresh."""
        self._tree, self._limits = tree, limits or Limits()

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """See the port. Also refuses with `malformed_layout` what is no layout of version 1.0.0."""
        with closing(self._tree()) as tree:
            entries = _entries(tree, self._limits)
            return take_in(entries, _LayoutBlobs(tree), wanted, blobs, progress, self._limits)


class _LayoutBlobs:
    """The blobs of a layout."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def open(self, digest: str) -> BinaryIO:
        file = self._tree.open(_blob_name(digest))
        if file is None:
            raise _missing(digest)
        return file

    def size(self, digest: str) -> int:
        size = self._tree.size(_blob_name(digest))
        if size is None:
            raise _missing(digest)
        return size


def _blob_name(digest: str) -> str:
    return f"blobs/sha256/{hex_of(digest)}"


def _missing(digest: str) -> RefusedError:
    return RefusedError(Reason.BLOB_MISSING, f"the layout lacks the blob {digest}", details={"digest": digest})


def _entries(tree: Tree, limits: Limits) -> tuple[IndexEntry, ...]:
    """The layout's index, after a look at the layout's version."""
    marker = read_document(_small(tree, "oci-layout", _VERSION_BYTES), Reason.MALFORMED_LAYOUT, "oci-layout")
    version = marker.text("imageLayoutVersion")
    if version != _VERSION:
        raise marker.fault(f"version {version[:40]} is not {_VERSION}")
    return parse_index(_small(tree, "index.json", limits.manifest_bytes))


def _small(tree: Tree, name: str, bound: int) -> bytes:
    file = tree.open(name)
    if file is None:
        raise RefusedError(Reason.MALFORMED_LAYOUT, f"the layout has no {name}")
    with file:
        data = file.read(bound + 1)
    check_limit("manifest_bytes", len(data), bound)
    return data


class FolderTree:
    """A layout as a folder, walked by descriptors; no link is followed and nothing outside is reached."""

    def __init__(self, path: Path) -> None:
        """Open the folder. Refuses with `malformed_layout` when there is none."""
        try:
            self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            raise RefusedError(Reason.MALFORMED_LAYOUT, "the layout is no folder") from None

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._root)

    def open(self, name: str) -> BinaryIO | None:
        """Open a regular file. Refuses links and special files with `malformed_layout`."""
        fd = self._descend(name)
        if fd is None:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise _no_file(name)
        return os.fdopen(fd, "rb")

    def size(self, name: str) -> int | None:
        """Bytes of a regular file."""
        file = self.open(name)
        if file is None:
            return None
        with file:
            return os.fstat(file.fileno()).st_size

    def _descend(self, name: str) -> int | None:
        *folders, last = name.split("/")
        here = os.dup(self._root)
        try:
            for part, flags in [*((folder, os.O_DIRECTORY) for folder in folders), (last, os.O_NONBLOCK)]:
                inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | flags, dir_fd=here)
                os.close(here)
                here = inner
        except FileNotFoundError:
            os.close(here)
            return None
        except OSError as error:
            os.close(here)
            if error.errno in _NO_FILE:
                raise _no_file(name) from None
            raise
        return here


def _no_file(name: str) -> RefusedError:
    return RefusedError(Reason.MALFORMED_LAYOUT, f"{name} is no regular file inside the layout")


class ArchiveTree:
    """A layout as a tar file, read in place: nothing is extracted, and no link in it is followed."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        """Read the whole archive's headers. Refuses with `malformed_archive` or `limit_exceeded`."""
        self._file = path.open("rb", buffering=0)
        try:
            self._members = _members(self._file, limits or Limits())
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Let go of the archive; files opened from it end, too."""
        self._file.close()

    def open(self, name: str) -> BinaryIO | None:
        """Open a member."""
        member = self._members.get(name.encode())
        return None if member is None else cast("BinaryIO", io.BufferedReader(_Window(self._file.fileno(), *member)))

    def size(self, name: str) -> int | None:
        """Bytes of a member."""
        member = self._members.get(name.encode())
        return None if member is None else member[1]


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


def _members(file: io.FileIO, limits: Limits) -> dict[bytes, tuple[int, int]]:
    """Offset and size of each regular file."""
    members: dict[bytes, tuple[int, int]] = {}
    seen: set[bytes] = set()
    try:
        for entry in TarReader(lambda view: file.readinto(view) or 0, limits):
            check_limit("archive_members", len(seen) + 1, limits.archive_members)
            name = _inside(entry)
            if name in seen:
                raise _malformed("a member stands there twice")
            seen.add(name)
            if entry.kind is Kind.FILE:
                members[name] = (entry.data_at, entry.stored)
    except TarLimitError as error:
        raise RefusedError.of(exceeded(error.limit, error.value, error.bound)) from None
    except TarError as error:
        raise _malformed(str(error)) from None
    return members


def _inside(entry: Entry) -> bytes:
    """The member's name without what means nothing. Refuses names that lead out, links and special files."""
    parts = [part for part in entry.name.split(b"/") if part not in (b"", b".")]
    if entry.name.startswith(b"/") or b".." in parts or b"\0" in entry.name:
        raise _malformed("a member's name leads out of it")
    if entry.kind not in (Kind.FILE, Kind.FOLDER) or entry.segments is not None:
        raise _malformed("a member is neither a plain file nor a folder")
    return b"/".join(parts)


def _malformed(why: str) -> RefusedError:
    return RefusedError(Reason.MALFORMED_ARCHIVE, f"the archive cannot be read: {why}")
