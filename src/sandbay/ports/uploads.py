"""Bytes received from clients, until they are registered or expire.

Contract: bytes are hashed and counted while they stream in; what is incomplete or over the limit leaves
nothing behind. An upload is opened as an image source and never extracted.
"""

from collections.abc import Iterable
from typing import Protocol

from sandbay.domain.ids import UploadId
from sandbay.ports.image_source import ImageSource


class Uploads(Protocol):
    """One folder of received files."""

    def receive(self, upload: UploadId, chunks: Iterable[bytes], limit: int) -> tuple[str, int]:
        """Store a stream: (digest, size). Refuses with `limit_exceeded` (bytes over `limit`) or `no_space`."""

    def source(self, upload: UploadId) -> ImageSource:
        """The upload as an image source. Refuses with `not_found`."""

    def remove(self, upload: UploadId) -> None:
        """Harmless when it is gone."""
