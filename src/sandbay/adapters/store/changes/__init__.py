"""The writes: one function per class of change, found by its type.

Each looks at what its change relies on and then writes, so a transaction must be alone, or as good as alone
(SQLite: BEGIN IMMEDIATE; elsewhere: serialisable, repeated when the database says so). The keys and guards of
the tables stand behind that.
"""

from collections.abc import Callable, Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from sandbay.adapters.store.changes import (
    catalog,
    channels,
    contracts,
    fleet,
    projects,
    publishes,
    records,
    sessions,
    snapshots,
    standing,
    templates,
)
from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.ports.changes import Change, Conflict, ConflictKind

WRITES: Writes = {
    **catalog.WRITES,
    **channels.WRITES,
    **contracts.WRITES,
    **fleet.WRITES,
    **projects.WRITES,
    **publishes.WRITES,
    **records.WRITES,
    **sessions.WRITES,
    **snapshots.WRITES,
    **standing.WRITES,
    **templates.WRITES,
}


def write(
    connection: Connection, changes: Sequence[Change], kind_of: Callable[[IntegrityError], ConflictKind | None]
) -> None:
    """Write all into the connection's transaction. Raises Conflict; the caller then rolls back.

    `kind_of` knows which of the database's own refusals are conflicts; the others are faults and stay what they are.
    """
    for change in changes:
        try:
            WRITES[type(change)](connection, change)
        except IntegrityError as error:
            kind = kind_of(error)
            if kind is None:
                raise
            raise Conflict(change, kind) from error
