"""What most changes look at first."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Select, Update

from sandbay.ports.changes import Change, Conflict, ConflictKind

Values = Mapping[str, Any]


def value_there(connection: Connection, statement: Select[Any], values: Values, change: Change) -> Any:
    """The one value of the one row. Raises `MISSING` without a row."""
    row = connection.execute(statement, values).first()
    if row is None:
        raise Conflict(change, ConflictKind.MISSING)
    return row[0]


def refuse_taken(connection: Connection, statement: Select[Any], values: Values, change: Change) -> None:
    """Raise `TAKEN` with the id that the statement finds."""
    holder = connection.execute(statement, values).scalar()
    if holder is not None:
        raise Conflict(change, ConflictKind.TAKEN, holder)


def refuse_beyond(limit: int, count: int, change: Change) -> None:
    """Raise `LIMIT` with the limit when one more would be too many."""
    if count >= limit:
        raise Conflict(change, ConflictKind.LIMIT, limit)


def refuse_unless(holds: bool, current: object, change: Change) -> None:  # noqa: FBT001 - the check itself
    """Raise `STALE` with what is there."""
    if not holds:
        raise Conflict(change, ConflictKind.STALE, current)


def move(connection: Connection, find: Select[Any], update: Update, values: Values, change: Any) -> None:
    """Update the row whose state is one of `change.before`. Raises `MISSING`, or `STALE` with the state."""
    before: Collection[object] = change.before
    state = value_there(connection, find, values, change)
    refuse_unless(state in before, state, change)
    connection.execute(update, values)


def replace_next(connection: Connection, find: Select[Any], update: Update, values: Values, change: Any) -> None:
    """Update the row whose revision is one less. Raises `MISSING`, or `STALE` with the stored revision."""
    stored = value_there(connection, find, values, change)
    refuse_unless(stored == values["revision"] - 1, stored, change)
    connection.execute(update, values)
