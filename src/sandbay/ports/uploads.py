"""Bytes received from clients, until they are registered or expire.

Contract: bytes are hashed and counted while they stream in; what is incomplete or over the limit leaves
nothing behind. An upload is opened as an image source, which is never extracted, or as a build's context.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from sandbay.domain.ids import UploadId
from sandbay.ports.builder import Context
from sandbay.ports.image_source import ImageSource


class Uploads(Protocol):
    """One folder of received files."""

    def receive(self, upload: UploadId, chunks: Iterable[bytes], limit: int) -> tuple[str, int]:
        """Store a stream: (digest, size). Refuses with `limit_exceeded` (bytes over `limit`) or `no_space`."""

    def has(self, upload: UploadId) -> bool:
        """Whether its bytes are here, and not with another Core."""

    def source(self, upload: UploadId) -> ImageSource:
        """The upload as an image source. Refuses with `not_found`."""

    def context(self, upload: UploadId) -> AbstractContextManager[Context]:
        """The upload, a tar of a folder, as the context of a build, judged whole before it is handed out.

        Refuses with `not_found`, `malformed_archive`, `unsafe_link`, `limit_exceeded`.
        """

    def remove(self, upload: UploadId) -> None:
        """Harmless when it is gone."""
