"""Where the state of suspended Sessions is kept, and what is to be let go."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.snapshot_tables import is_kept
from sandbay.adapters.store.tables import allocations, is_open, snapshots
from sandbay.domain.allocation import AllocationState
from sandbay.domain.ids import SnapshotId
from sandbay.domain.suspension import Suspension, SuspensionState
from sandbay.ports.snapshots import SnapshotOf, SnapshotsToDrop

_KEPT = select(*columns_of(Suspension, snapshots)).where(snapshots.c.session == bindparam("session"), is_kept)
_being_moved = (
    select(allocations.c.id)
    .where(allocations.c.session == snapshots.c.session, is_open)
    .where(allocations.c.state != AllocationState.RUNNING)
    .exists()
)
_dropping = snapshots.c.state == SuspensionState.DROPPING
_TO_DROP = (
    select(snapshots.c.id)
    .where(snapshots.c.node == bindparam("node"), _dropping, ~_being_moved)
    .order_by(snapshots.c.id)
)


def _snapshot_of(connection: Connection, query: SnapshotOf) -> Suspension | None:
    row = connection.execute(_KEPT, {"session": query.session}).first()
    return None if row is None else noun(Suspension, row)


def _to_drop(connection: Connection, query: SnapshotsToDrop) -> Sequence[SnapshotId]:
    return tuple(connection.execute(_TO_DROP, {"node": query.node}).scalars())


ANSWERS: Answers = {SnapshotOf: _snapshot_of, SnapshotsToDrop: _to_drop}
