"""A suspension: Core's record of one snapshot of a Session, from being taken to being let go.

taking ─its node keeps it▶ held ─resumed, or the Session is over▶ dropping ─its node has let it go▶ dropped
taking ─cannot be kept, or the Session is over▶ dropping
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sandbay.domain.ids import FrozenId, NodeId, SessionId, SnapshotId


class SuspensionState(StrEnum):
    """Only what is HELD can be resumed from; what is DROPPING is nobody's any more, what is DROPPED is gone."""

    TAKING = "taking"
    HELD = "held"
    DROPPING = "dropping"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Suspension:
    """Where the state of a Session is kept, and of which release it is: of that one, and no other.

    `bytes` is None until it is held.
    """

    id: SnapshotId
    session: SessionId
    node: NodeId
    frozen: FrozenId
    frozen_digest: str
    at: datetime
    state: SuspensionState = SuspensionState.TAKING
    bytes: int | None = None
