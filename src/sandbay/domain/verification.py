"""What was seen when every byte of an image was looked at again: in the installation's store, and on nodes.

Unknown is not damaged: what could not be looked at keeps its standing.
"""

from dataclasses import dataclass
from enum import StrEnum

from sandbay.domain.ids import NodeId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault

DAMAGE = frozenset({Reason.DIGEST_MISMATCH, Reason.SIZE_MISMATCH, Reason.BLOB_MISSING})
"""What is said of a blob that is not what it was. Mended, it is as good as new."""


class Seen(StrEnum):
    """One verdict."""

    WHOLE = "whole"
    DAMAGED = "damaged"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SeenBlob:
    """One blob of the installation's store; `numbers` are the releases that need it."""

    digest: str
    size: int
    numbers: tuple[int, ...]
    fault: Fault | None = None

    @property
    def seen(self) -> Seen:
        """The verdict."""
        if self.fault is None:
            return Seen.WHOLE
        return Seen.DAMAGED if self.fault.reason in DAMAGE else Seen.UNKNOWN


@dataclass(frozen=True, slots=True)
class SeenOnNode:
    """One variant on one node that had it ready."""

    node: NodeId
    node_name: str
    number: int
    key: ContentKey
    fault: Fault | None = None

    @property
    def seen(self) -> Seen:
        """The verdict."""
        if self.fault is None:
            return Seen.WHOLE
        return Seen.DAMAGED if self.fault.reason is Reason.CONTENT_LOST else Seen.UNKNOWN


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything of one image that was looked at."""

    blobs: tuple[SeenBlob, ...]
    nodes: tuple[SeenOnNode, ...]

    @property
    def seen(self) -> Seen:
        """The worst verdict."""
        found = {blob.seen for blob in self.blobs} | {it.seen for it in self.nodes}
        return next((seen for seen in (Seen.DAMAGED, Seen.UNKNOWN) if seen in found), Seen.WHOLE)
