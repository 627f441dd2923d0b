"""Scopes, and what stands under subjects."""

from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, literal, select, type_coerce, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_unless, value_there
from sandbay.adapters.store.columns import JSON_VALUE
from sandbay.adapters.store.queries.standing import TABLES, lineage
from sandbay.adapters.store.rows import names_of, values_of
from sandbay.adapters.store.standing_tables import scopes
from sandbay.adapters.store.tables import keys
from sandbay.domain.path import Subject
from sandbay.domain.scope import DEEPEST, parent_fault
from sandbay.domain.trail import Level
from sandbay.ports.changes import Conflict, ConflictKind
from sandbay.ports.standing import DropScope, DropStanding, PutScope, PutStanding, Standard

_SCOPE = select(scopes.c.revision, scopes.c.project).where(scopes.c.name == bindparam("key"))
_REVISION = select(scopes.c.revision).where(scopes.c.name == bindparam("key"))
_MOVE = (
    update(scopes)
    .where(scopes.c.name == bindparam("key"))
    .values(parent=bindparam("to"), revision=bindparam("following"))
)
_DROP = delete(scopes).where(scopes.c.name == bindparam("key"))
_CHILD = select(scopes.c.name).where(scopes.c.parent == bindparam("key")).order_by(scopes.c.name).limit(1)
_HELD = (
    select(keys.c.id)
    .where(
        keys.c.revoked_at.is_(None),
        type_coerce(keys.c.confinement, JSON_VALUE)["scope"].as_string() == bindparam("key"),
    )
    .order_by(keys.c.id)
    .limit(1)
)


def _height() -> Any:
    """How many scopes there are on the longest way down from one, itself included; no more than is too many."""
    down = select(scopes.c.name, literal(1).label("depth")).where(scopes.c.name == bindparam("key")).cte(recursive=True)
    child = (
        select(scopes.c.name, down.c.depth + 1)
        .join(down, scopes.c.parent == down.c.name)
        .where(down.c.depth <= DEEPEST)
    )
    return select(func.max(down.union(child).c.depth))


_HEIGHT = _height()


def _put_scope(connection: Connection, change: PutScope) -> None:
    scope = change.scope
    there = connection.execute(_SCOPE, {"key": scope.name}).first()
    revision, owner = (0, scope.project) if there is None else there
    if owner != scope.project:
        raise Conflict(change, ConflictKind.TAKEN, scope.name)
    refuse_unless(revision == scope.revision - 1, revision, change)
    above = () if scope.parent is None else lineage(connection, scope.parent)
    fault = parent_fault(scope, above)
    if fault is not None:
        raise Conflict(change, ConflictKind.IN_USE, fault)
    if there is None:
        connection.execute(insert(scopes), values_of(scope))
        return
    below = connection.execute(_HEIGHT, {"key": scope.name}).scalar_one()
    if len(above) + below > DEEPEST:
        raise Conflict(change, ConflictKind.LIMIT, DEEPEST)
    connection.execute(_MOVE, {"key": scope.name, "to": scope.parent, "following": scope.revision})


def _drop_scope(connection: Connection, change: DropScope) -> None:
    key = {"key": change.name}
    stored = value_there(connection, _REVISION, key, change)
    refuse_unless(stored == change.revision, stored, change)
    below, held = (connection.execute(statement, key).scalar() for statement in (_CHILD, _HELD))
    user = below or held or _standing_under(connection, Subject.of_scope(change.name))
    if user is not None:
        raise Conflict(change, ConflictKind.IN_USE, user)
    connection.execute(_DROP, key)


def _standing_under(connection: Connection, subject: Subject) -> str | None:
    """The kind of row that stands there, if any does."""
    for table in TABLES.values():
        if connection.execute(select(table.c.revision).where(table.c.subject == subject)).first() is not None:
            return table.name
    return None


def _this(table: Table, row: Standard) -> Any:
    return and_(*(column == getattr(row, column.name) for column in table.primary_key.columns))


def _put_standing(connection: Connection, change: PutStanding) -> None:
    row, table = change.row, TABLES[type(change.row)]
    if row.subject.level is Level.SCOPE:
        value_there(connection, _REVISION, {"key": row.subject.name}, change)
    stored = connection.execute(select(table.c.revision).where(_this(table, row))).scalar()
    refuse_unless((stored or 0) == row.written.revision - 1, stored or 0, change)
    said = {name: getattr(row, name) for name in names_of(type(row)) if name != "written"}
    values = {**said, **values_of(row.written)}
    if stored is None:
        connection.execute(insert(table), values)
    else:
        connection.execute(update(table).where(_this(table, row)).values(values))


def _drop_standing(connection: Connection, change: DropStanding) -> None:
    row, table = change.row, TABLES[type(change.row)]
    stored = value_there(connection, select(table.c.revision).where(_this(table, row)), {}, change)
    refuse_unless(stored == row.written.revision, stored, change)
    connection.execute(delete(table).where(_this(table, row)))


WRITES: Writes = {
    DropScope: _drop_scope,
    DropStanding: _drop_standing,
    PutScope: _put_scope,
    PutStanding: _put_standing,
}
