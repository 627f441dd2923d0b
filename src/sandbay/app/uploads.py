"""Bytes on their way into the installation: received, hashed, remembered until they expire."""

from collections.abc import Iterable

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import UploadId
from sandbay.domain.reasons import Reason
from sandbay.ports.changes import AddUpload
from sandbay.ports.image_source import ImageSource
from sandbay.ports.records import Upload
from sandbay.ports.store import UploadOf


def receive(core: Core, actor: Actor, chunks: Iterable[bytes]) -> Upload:
    """Store a stream. A crash in between leaves a file without a row, which the sweep at start removes."""
    upload_id = UploadId(core.ids.new("upload"))
    digest, size = core.uploads.receive(upload_id, chunks, core.settings.upload_bytes)
    upload = Upload(upload_id, digest, size, core.clock.now() + core.settings.upload_life)
    core.store.apply(AddUpload(upload), audit.done(core, actor, "upload.receive", upload_id, {"digest": digest}))
    return upload


def open_source(core: Core, upload: str) -> ImageSource:
    """The upload as an image source; `not_found` when it is unknown or expired."""
    found = core.store.read(UploadOf(UploadId(upload)))
    if found is None or found.expires_at <= core.clock.now():
        raise RefusedError(Reason.NOT_FOUND, f"there is no upload {upload}, or it has expired", param="source.upload")
    return core.uploads.source(found.id)
