"""Uploads."""

from datetime import datetime

from pydantic import Field

from sandbay.api.wire.base import Out
from sandbay.ports.records import Upload


class UploadOut(Out):
    """Received bytes, to be named by a registration."""

    id: str = Field(description="Its id.")
    digest: str = Field(description="sha256:… of the bytes.")
    size: int = Field(description="Bytes.")
    expires_at: datetime = Field(description="When it is dropped.")


def upload_out(upload: Upload) -> UploadOut:
    """From the record."""
    return UploadOut(id=upload.id, digest=upload.digest, size=upload.size, expires_at=upload.expires_at)
