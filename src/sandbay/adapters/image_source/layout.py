"""An OCI layout as an image source: a folder, or an uploaded tar of one that is read where it lies.

    LayoutSource(lambda: FolderTree(path))
    LayoutSource(lambda: ArchiveTree(Archive(path)))

Names inside are the layout's own (`oci-layout`, `index.json`, `blobs/<algorithm>/<hex>`), never names that the
content chooses, and no link is followed.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Protocol

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.archive import Archive, malformed
from sandbay.engine.digest import chunks_of, hex_of, wrong_size
from sandbay.engine.documents import read_document
from sandbay.engine.intake import Origin, take_in
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import Descriptor, IndexEntry, check_limit, parse_index
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import Progress, Wanted

MARKER = "oci-layout"
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


class _LayoutBlobs(Origin):
    """The blobs of a layout."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def check(self, blob: Descriptor) -> None:
        size = self._tree.size(_blob_name(blob.digest))
        if size is None:
            raise _missing(blob.digest)
        if size != blob.size:
            raise wrong_size(blob.digest, blob.size, size)

    def chunks(self, blob: Descriptor) -> Generator[bytes]:
        file = self._tree.open(_blob_name(blob.digest))
        if file is None:
            raise _missing(blob.digest)
        with file:
            yield from chunks_of(file)


def _blob_name(digest: str) -> str:
    return f"blobs/sha256/{hex_of(digest)}"


def _missing(digest: str) -> RefusedError:
    return RefusedError(Reason.BLOB_MISSING, f"the layout lacks the blob {digest}", details={"digest": digest})


def _entries(tree: Tree, limits: Limits) -> tuple[IndexEntry, ...]:
    """The layout's index, after a look at the layout's version."""
    marker = read_document(_small(tree, MARKER, _VERSION_BYTES), Reason.MALFORMED_LAYOUT, MARKER)
    version = marker.text("imageLayoutVersion")
    if version != _VERSION:
        raise marker.fault(f"version {version[:40]} is not {_VERSION}")
    return parse_index(_small(tree, "index.json", limits.manifest_bytes))


def _small(tree: Tree, name: str, bound: int) -> bytes:
    file = tree.open(name)
    if file is None:
        raise RefusedError(Reason.MALFORMED_LAYOUT, f"it has no {name}, which every OCI image layout has")
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
    """A layout as an archive. No link in it is followed, and one that is there is refused."""

    def __init__(self, archive: Archive) -> None:
        """Take the archive, and close it in the end. Refuses with `malformed_archive`."""
        self._archive = archive
        if archive.has_links:
            archive.close()
            raise malformed("a member of the layout is a link")

    def close(self) -> None:
        """Let go of the archive; files opened from it end, too."""
        self._archive.close()

    def open(self, name: str) -> BinaryIO | None:
        """Open a member."""
        stretch = self._archive.find(name)
        return None if stretch is None else self._archive.open(stretch)

    def size(self, name: str) -> int | None:
        """Bytes of a member."""
        stretch = self._archive.find(name)
        return None if stretch is None else stretch[1]
