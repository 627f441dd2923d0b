"""The suspended state of Sessions in the store: where it is kept, and what is to be let go."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.domain.ids import NodeId, SessionId, SnapshotId
from sandbay.domain.suspension import Suspension
from sandbay.ports.changes import Change
from sandbay.ports.store import Query


@dataclass(frozen=True, slots=True)
class AddSnapshot(Change):
    """Begin to take one. Relies on the Session having none that is taken or held (`TAKEN`, current: that one)."""

    suspension: Suspension


@dataclass(frozen=True, slots=True)
class HoldSnapshot(Change):
    """Its node keeps it. Relies on its being taken."""

    snapshot: SnapshotId
    bytes: int


@dataclass(frozen=True, slots=True)
class LetGoSnapshots(Change):
    """Nobody needs what is kept of this Session any more; there may be nothing."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class DropSnapshot(Change):
    """Its node has let it go. Relies on its being dropped."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class SnapshotOf(Query[Suspension | None]):
    """The one of a Session that is taken or held."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class SnapshotsToDrop(Query[Sequence[SnapshotId]]):
    """What a node may let go: nobody's any more, and its Session is neither being suspended, started nor stopped."""

    node: NodeId
