"""Placement: the decision Session → node, or the counted reasons why not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sandbay.domain.ids import NodeId
from sandbay.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Placed:
    """The node and pool that the Session runs on, and the slots the reservation is guarded by."""

    node: NodeId
    pool: str
    slots: int


class FellOut(StrEnum):
    """Why one node, or a whole pool, is no candidate."""

    PROVIDER = "provider cannot run it"
    TOO_SMALL = "sandbox too small"
    PAUSED = "paused"
    NO_NODES = "no nodes"
    OFFLINE = "offline"
    WARMING = "warming"
    ABSENT = "absent"
    PREPARING = "preparing"
    FAILED = "failed"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Nothing can take it now. `counts` is pool → why → how many nodes (0 where the pool itself fell out).

    `able` are the online nodes that could prepare it: where a wish would go. Least loaded first, but those that
    failed and will try again last; a node that failed for good is none of them.
    """

    reason: Reason
    counts: Mapping[str, Mapping[FellOut, int]] = field(default_factory=dict)
    able: tuple[NodeId, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
