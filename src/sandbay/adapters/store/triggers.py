"""The guards of the database, derived from `Table.info` and never written by hand.

Alembic's batch mode copies a table and drops its triggers in silence, so they are no part of any migration:
`sync` brings them back after every upgrade. A row is guarded against UPDATE of its frozen columns, DELETE and,
in PostgreSQL, TRUNCATE. SQLite's REPLACE deletes what stands in its way without asking a DELETE trigger
(unless `recursive_triggers` is on, which another program need not set): there, an INSERT or UPDATE that meets
any unique key of another row is refused before it can.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, UniqueConstraint, and_, literal_column, select, text
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.visitors import replacement_traverse

TAKEN = "taken"
"""How the message of a refused insert begins: a row with such a key is there already."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One guard: its name, its table, and the statement that makes it."""

    name: str
    table: str
    statement: str


@dataclass(frozen=True, slots=True)
class _Unique:
    """Columns that no two rows may share, of the rows that `where` speaks of."""

    columns: tuple[Column[Any], ...]
    where: ColumnElement[bool] | None = None


def triggers(metadata: MetaData, dialect: Dialect) -> tuple[Trigger, ...]:
    """Every guard that the tables declare, in the words of the dialect."""
    derive = _in_sqlite if dialect.name == "sqlite" else _in_postgresql
    return tuple(trigger for table in metadata.sorted_tables for trigger in derive(table, dialect))


def sync(connection: Connection, metadata: MetaData) -> None:
    """Make the database's triggers exactly those of the metadata. Writes nothing when they are."""
    if connection.dialect.name == "sqlite":
        _sync_sqlite(connection, triggers(metadata, connection.dialect))
    else:
        _sync_postgresql(connection, triggers(metadata, connection.dialect))


def frozen_columns(table: Table) -> tuple[str, ...]:
    """Names of the columns that keep what was inserted."""
    declared = table.info.get("frozen", ())
    return tuple(column.name for column in table.columns) if declared == "*" else tuple(declared)


def _in_sqlite(table: Table, dialect: Dialect) -> Iterator[Trigger]:
    frozen, uniques = frozen_columns(table), _uniques(table, dialect)
    if frozen:
        differs = " OR ".join(f"OLD.{_quoted(name, dialect)} IS NOT NEW.{_quoted(name, dialect)}" for name in frozen)
        yield _sqlite(table, "update", f"UPDATE ON {table.name} WHEN {differs}", "refused: update of")
        yield _sqlite(table, "insert", f"INSERT ON {table.name} WHEN {_meets(table, uniques, dialect)}", TAKEN)
    movable = [unique for unique in uniques if unique.where is not None or not _all_in(unique.columns, frozen)]
    if frozen and movable:
        meets = _meets(table, movable, dialect, but_itself=True)
        yield _sqlite(table, "replace", f"UPDATE ON {table.name} WHEN {meets}", TAKEN)
    if table.info.get("kept"):
        yield _sqlite(table, "delete", f"DELETE ON {table.name}", "refused: delete from")
    if table.info.get("sealed_by"):
        yield _sqlite(table, "seal", f"INSERT ON {table.name} WHEN {_sealed(table, dialect)}", "refused: addition to")


def _sqlite(table: Table, kind: str, event: str, message: str) -> Trigger:
    name = f"{table.name}_{kind}_refused"
    body = f"BEGIN SELECT RAISE(ABORT, '{message} {table.name}'); END"
    return Trigger(name, table.name, f"CREATE TRIGGER {name} BEFORE {event} {body}")


def _in_postgresql(table: Table, dialect: Dialect) -> Iterator[Trigger]:
    """Inserting over a row is an UPDATE or an error of its own there."""
    frozen = frozen_columns(table)
    if frozen:
        pairs = ((f"OLD.{_quoted(name, dialect)}", f"NEW.{_quoted(name, dialect)}") for name in frozen)
        differs = " OR ".join(f"{old} IS DISTINCT FROM {new}" for old, new in pairs)
        yield _postgresql(table, "update", f"UPDATE ON {table.name} FOR EACH ROW WHEN ({differs})")
    if table.info.get("kept"):
        yield _postgresql(table, "delete", f"DELETE ON {table.name} FOR EACH ROW")
        yield _postgresql(table, "truncate", f"TRUNCATE ON {table.name} FOR EACH STATEMENT")
    if table.info.get("sealed_by"):
        event = f"INSERT ON {table.name} FOR EACH ROW"
        yield _postgresql(table, "seal", event, f"refuse_sealed('{table.info['sealed_by']}')")


def _postgresql(table: Table, kind: str, event: str, call: str = "refuse()") -> Trigger:
    name = f"{table.name}_{kind}_refused"
    return Trigger(name, table.name, f"CREATE TRIGGER {name} BEFORE {event} EXECUTE FUNCTION {call}")


_POSTGRESQL_FUNCTIONS = {
    "refuse": """CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE check_violation USING MESSAGE = 'refused: ' || lower(TG_OP) || ' of ' || TG_TABLE_NAME; END $$""",
    "refuse_sealed": """CREATE OR REPLACE FUNCTION refuse_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE sealed boolean; BEGIN
    EXECUTE 'SELECT EXISTS (SELECT 1 FROM ' || quote_ident(TG_ARGV[0]) || ' WHERE release = $1)'
    INTO sealed USING NEW.release;
    IF sealed THEN
    RAISE check_violation USING MESSAGE = 'refused: addition to ' || TG_TABLE_NAME; END IF;
    RETURN NEW; END $$""",
}


def _uniques(table: Table, dialect: Dialect) -> tuple[_Unique, ...]:
    """The primary key, unique constraints and unique indexes; but none that another one implies."""
    constraints = [c for c in table.constraints if isinstance(c, UniqueConstraint)]
    indexes = [i for i in table.indexes if i.unique]
    found = [
        _Unique(tuple(table.primary_key.columns)),
        *(_Unique(tuple(constraint.columns)) for constraint in constraints),
        *(_Unique(tuple(index.columns), index.dialect_options[dialect.name]["where"]) for index in indexes),
    ]
    least = [u for u in found if not any(o.where is None and set(o.columns) < set(u.columns) for o in found)]
    return tuple(sorted(least, key=lambda unique: [column.name for column in unique.columns]))


def _all_in(columns: Iterable[Column[Any]], names: tuple[str, ...]) -> bool:
    return {column.name for column in columns} <= set(names)


def _new(column: Column[Any], dialect: Dialect) -> ColumnElement[Any]:
    return literal_column(f"NEW.{_quoted(column.name, dialect)}", column.type)


def _meets(table: Table, uniques: Iterable[_Unique], dialect: Dialect, *, but_itself: bool = False) -> str:
    """SQL: some row of the table has a key of NEW. `but_itself` leaves out the row that is being updated."""
    own = and_(*(c == literal_column(f"OLD.{_quoted(c.name, dialect)}") for c in table.primary_key.columns))
    met = (and_(_met(unique, dialect), ~own) if but_itself else _met(unique, dialect) for unique in uniques)
    return " OR ".join(_exists(condition, table, dialect) for condition in met)


def _met(unique: _Unique, dialect: Dialect) -> ColumnElement[bool]:
    same = and_(*(column == _new(column, dialect) for column in unique.columns))
    if unique.where is None:
        return same

    def of_new(element: Any, **_: Any) -> Any:
        return _new(element, dialect) if isinstance(element, Column) else None

    return and_(same, unique.where, replacement_traverse(unique.where, {}, of_new))


def _exists(condition: ColumnElement[bool], table: Table, dialect: Dialect) -> str:
    query = select(literal_column("1")).select_from(table).where(condition).exists()
    return str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True})).replace("\n", "")


def _sealed(table: Table, dialect: Dialect) -> str:
    seal = table.metadata.tables[table.info["sealed_by"]]
    return _exists(seal.c.release == _new(table.c.release, dialect), seal, dialect)


def _quoted(name: str, dialect: Dialect) -> str:
    return dialect.identifier_preparer.quote(name)


def _sync_sqlite(connection: Connection, wanted: tuple[Trigger, ...]) -> None:
    rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
    there = {row.name: row.sql for row in rows}
    right = {trigger.name for trigger in wanted if there.get(trigger.name) == trigger.statement}
    for name in there.keys() - right:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    for trigger in wanted:
        if trigger.name not in right:
            connection.exec_driver_sql(trigger.statement)


def _sync_postgresql(connection: Connection, wanted: tuple[Trigger, ...]) -> None:
    """PostgreSQL keeps its own words: each trigger's comment says which of our statements made which of its."""
    for name, function in _POSTGRESQL_FUNCTIONS.items():
        if connection.execute(_FUNCTION_BODY, {"name": name}).scalar() != function.split("$$")[1]:
            connection.exec_driver_sql(function)
    there = _postgresql_triggers(connection)
    right = {at for trigger in wanted if (at := (trigger.table, trigger.name)) in there and there[at].by(trigger)}
    for at in there.keys() - right:
        connection.exec_driver_sql(f"DROP TRIGGER {there[at].quoted}")
    missing = [trigger for trigger in wanted if (trigger.table, trigger.name) not in right]
    for trigger in missing:
        connection.exec_driver_sql(trigger.statement)
    made = _postgresql_triggers(connection) if missing else {}
    for trigger in missing:
        found = made[trigger.table, trigger.name]
        connection.exec_driver_sql(f"COMMENT ON TRIGGER {found.quoted} IS '{found.mark(trigger)}'")


@dataclass(frozen=True, slots=True)
class _Found:
    """A trigger as PostgreSQL has it. `quoted`: its name and table, as statements want them."""

    table: str
    name: str
    quoted: str
    enabled: str
    definition: str
    comment: str | None

    def by(self, trigger: Trigger) -> bool:
        """Whether it is what that statement made, and at work."""
        return self.comment == self.mark(trigger) and self.enabled == "O"

    def mark(self, trigger: Trigger) -> str:
        """What its comment is when that statement made it."""
        return hashlib.sha256(f"{trigger.statement}\n{self.definition}".encode()).hexdigest()


def _postgresql_triggers(connection: Connection) -> dict[tuple[str, str], _Found]:
    found = (_Found(*row) for row in connection.execute(_POSTGRESQL_TRIGGERS))
    return {(it.table, it.name): it for it in found}


_FUNCTION_BODY = text(
    "SELECT prosrc FROM pg_proc WHERE proname = :name AND pronamespace = current_schema()::regnamespace"
)
_POSTGRESQL_TRIGGERS = text(
    "SELECT c.relname, t.tgname, quote_ident(t.tgname) || ' ON ' || t.tgrelid::regclass, t.tgenabled::text,"
    " pg_get_triggerdef(t.oid), obj_description(t.oid, 'pg_trigger')"
    " FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    " WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace"
)
