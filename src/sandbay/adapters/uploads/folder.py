"""Uploads as files of one folder, named by their ids. What a crash left unfinished is swept at start."""

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, closing
from pathlib import Path

from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import UploadId, kind_of
from sandbay.domain.reasons import Reason
from sandbay.engine.context import ArchiveContext
from sandbay.engine.durable import make_folder, place, remove_file, room
from sandbay.ports.builder import Context
from sandbay.ports.image_source import ImageSource

_PART = ".part"


class FolderUploads:
    """The port `uploads`. `open_source` makes an image source of a received file."""

    def __init__(self, root: Path, open_source: Callable[[Path], ImageSource]) -> None:
        """Open the folder, make it when it is new, and remove unfinished files."""
        self._root, self._open_source = make_folder(root), open_source
        for leftover in root.glob(f"*{_PART}"):
            leftover.unlink(missing_ok=True)

    def receive(self, upload: UploadId, chunks: Iterable[bytes], limit: int) -> tuple[str, int]:
        """Store a stream, whole and durable, or leave nothing."""
        target = self._path(upload)
        part = target.with_name(target.name + _PART)
        digest, size = hashlib.sha256(), 0
        try:
            with room(), part.open("xb") as file:
                for chunk in chunks:
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(limit)
                    digest.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            place(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return f"sha256:{digest.hexdigest()}", size

    def has(self, upload: UploadId) -> bool:
        """Whether the received file is here."""
        return self._path(upload).is_file()

    def source(self, upload: UploadId) -> ImageSource:
        """The received file as an image source."""
        return self._open_source(self._there(upload))

    def context(self, upload: UploadId) -> AbstractContextManager[Context]:
        """The received file as a build's context."""
        return closing(ArchiveContext(self._there(upload)))

    def _there(self, upload: UploadId) -> Path:
        if not self.has(upload):
            raise RefusedError(Reason.NOT_FOUND, f"there is no upload {upload}")
        return self._path(upload)

    def remove(self, upload: UploadId) -> None:
        """Harmless when it is gone."""
        remove_file(self._path(upload))

    def _path(self, upload: UploadId) -> Path:
        if kind_of(upload) != "upload":
            raise RefusedError(Reason.NOT_FOUND, f"{upload!r} is no upload")
        return self._root / upload


def _too_large(limit: int) -> RefusedError:
    return RefusedError(
        Reason.LIMIT_EXCEEDED, f"an upload has at most {limit} bytes", details={"limit": "upload_bytes", "bound": limit}
    )
