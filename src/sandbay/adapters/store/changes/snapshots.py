"""The suspended state of Sessions."""

from sqlalchemy import Connection, bindparam, insert, literal, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_taken, refuse_unless, value_there
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.snapshot_tables import is_kept
from sandbay.adapters.store.tables import snapshots
from sandbay.domain.suspension import SuspensionState
from sandbay.ports.snapshots import AddSnapshot, DropSnapshot, HoldSnapshot, LetGoSnapshots

_this = snapshots.c.id == bindparam("key")
_KEPT = select(snapshots.c.id).where(snapshots.c.session == bindparam("session"), is_kept)
_STATE = select(snapshots.c.state).where(_this)
_HELD, _DROPPING, _DROPPED = (
    literal(state, snapshots.c.state.type)
    for state in (SuspensionState.HELD, SuspensionState.DROPPING, SuspensionState.DROPPED)
)
_HOLD = update(snapshots).where(_this).values(state=_HELD, bytes=bindparam("size"))
_LET_GO = update(snapshots).where(snapshots.c.session == bindparam("of"), is_kept).values(state=_DROPPING)
_DROP = update(snapshots).where(_this).values(state=_DROPPED)


def _add(connection: Connection, change: AddSnapshot) -> None:
    refuse_taken(connection, _KEPT, {"session": change.suspension.session}, change)
    connection.execute(insert(snapshots), values_of(change.suspension))


def _hold(connection: Connection, change: HoldSnapshot) -> None:
    state = value_there(connection, _STATE, {"key": change.snapshot}, change)
    refuse_unless(state is SuspensionState.TAKING, state, change)
    connection.execute(_HOLD, {"key": change.snapshot, "size": change.bytes})


def _let_go(connection: Connection, change: LetGoSnapshots) -> None:
    connection.execute(_LET_GO, {"of": change.session})


def _drop(connection: Connection, change: DropSnapshot) -> None:
    state = value_there(connection, _STATE, {"key": change.snapshot}, change)
    refuse_unless(state is SuspensionState.DROPPING, state, change)
    connection.execute(_DROP, {"key": change.snapshot})


WRITES: Writes = {
    AddSnapshot: _add,
    DropSnapshot: _drop,
    HoldSnapshot: _hold,
    LetGoSnapshots: _let_go,
}
