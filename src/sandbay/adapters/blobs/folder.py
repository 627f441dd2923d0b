"""The blob store of one installation as a folder: `sha256/<hex>`, complete files only.

What is being written lies in `incoming/`, locked by its writer; what no living writer has locked was left by
a crash and is swept when the store is opened.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.digest import hex_of, verified
from sandbay.engine.durable import make_folder, place, room


class FolderBlobs:
    """The port `blobs` in a folder. Several processes may share it."""

    def __init__(self, root: Path) -> None:
        """Open the store, make it when it is new, and remove what a crash left."""
        make_folder(root)
        self._blobs = make_folder(root / "sha256")
        self._incoming = make_folder(root / "incoming")
        self._sweep()

    def has(self, digest: str) -> bool:
        """Whether the blob is there."""
        return self._path(digest).is_file()

    def put(self, digest: str, size: int, chunks: Iterable[bytes]) -> None:
        """Store a blob, visible only when it is whole, right and durable.

        All chunks are read and judged also when the blob is there already: what this store happens to hold
        never changes a verdict. A stored blob that has been damaged is replaced.
        """
        stream = verified(chunks, digest, size)
        if self._intact(digest, size):
            for _ in stream:
                pass
            return
        with room(self._blobs, size):
            self._write(self._path(digest), stream)

    def open(self, digest: str) -> BinaryIO:
        """Read a blob from its start. Refuses with `blob_missing`."""
        try:
            return self._path(digest).open("rb")
        except FileNotFoundError:
            raise _missing(digest) from None

    def pieced(self, digest: str) -> bool:  # noqa: ARG002 - nothing is transferred
        """Never."""
        return False

    def size(self, digest: str) -> int:
        """Bytes of a blob. Refuses with `blob_missing`."""
        try:
            return self._path(digest).stat().st_size
        except FileNotFoundError:
            raise _missing(digest) from None

    def _path(self, digest: str) -> Path:
        return self._blobs / hex_of(digest)

    def _intact(self, digest: str, size: int) -> bool:
        try:
            with self._path(digest).open("rb") as file:
                right_size = os.fstat(file.fileno()).st_size == size
                return right_size and hashlib.file_digest(file, "sha256").hexdigest() == hex_of(digest)
        except FileNotFoundError:
            return False

    def _write(self, target: Path, stream: Iterable[bytes]) -> None:
        temporary, file = self._begin()
        try:
            with file:
                for chunk in stream:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
                place(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _begin(self) -> tuple[Path, BinaryIO]:
        """A new locked file. Another process's sweep may have removed it just before it was locked."""
        while True:
            temporary = self._incoming / secrets.token_hex(8)
            file = temporary.open("xb")
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:
                return temporary, file
            file.close()

    def _sweep(self) -> None:
        for leftover in self._incoming.iterdir():
            with suppress(FileNotFoundError, BlockingIOError), leftover.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()


def _missing(digest: str) -> RefusedError:
    return RefusedError(Reason.BLOB_MISSING, f"the blob {digest} is not there", details={"digest": digest})
