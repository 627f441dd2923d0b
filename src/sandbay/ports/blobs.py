"""The installation's content-addressed store of image bytes: blobs in, verified blobs out.

Contract: `put` checks digest and size while it writes, and a blob is visible only when it is whole,
right and durable. `open` gives the bytes as they are; whoever reads them verifies them again.
"""

from collections.abc import Iterable
from typing import BinaryIO, Protocol


class Blobs(Protocol):
    """Keyed by `sha256:<64 hex>`."""

    def has(self, digest: str) -> bool:
        """Whether the blob is there."""

    def put(self, digest: str, size: int, chunks: Iterable[bytes]) -> None:
        """Store a blob. Repeating it is harmless.

        Refuses with `digest_mismatch`, `size_mismatch` or `no_space`, and leaves nothing behind.
        """

    def open(self, digest: str) -> BinaryIO:
        """Read a blob from its start. Refuses with `blob_missing`."""

    def pieced(self, digest: str) -> bool:
        """Whether its last reading was pieced together after a cut, so that wrong bytes may be the transfer's doing."""

    def size(self, digest: str) -> int:
        """Bytes of a blob. Refuses with `blob_missing`."""
