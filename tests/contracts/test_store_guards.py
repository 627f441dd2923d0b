"""The database itself refuses to change what was frozen, whoever writes and however: tried in raw SQL.

Every way is tried on connections set up as ours and on bare ones of `sqlite3`, which keep no foreign keys and let
REPLACE delete rows without asking a DELETE trigger.
"""

# ruff: noqa: S608 - the names in these statements are our own

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Table, create_engine, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import IntegrityError

from sandbay.adapters.store.connections import sqlite_engine
from sandbay.adapters.store.migrate import BrokenReferenceError, migrate
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.adapters.store.tables import METADATA
from sandbay.adapters.store.triggers import frozen_columns, sync, triggers
from sandbay.domain.allocation import AllocationState
from sandbay.domain.ids import AllocationId
from sandbay.domain.registry import RegistrySecret
from sandbay.ports.changes import (
    AddAudit,
    AddKey,
    AddUpload,
    AddWish,
    AdmitSession,
    MoveAllocation,
    PutRegistrySecret,
)
from tests.contracts.store_files import new_database
from tests.contracts.store_things import (
    FAULT,
    NODE,
    NOW,
    content,
    entry,
    everything,
    frozen,
    install,
    key,
    reserved,
    session,
    upload,
)

APPEND_ONLY = [
    *("releases", "variants", "channel_history", "deployments", "frozen_releases", "idempotency_keys", "audit"),
]
FROZEN = {
    "images": {"id", "name", "created_at"},
    "release_states": {"release"},
    "channels": {"image", "name"},
    "keys": {"id", "kind", "principal", "hash", "created_at", "project"},
    "sessions": {
        *("seq", "id", "project", "frozen", "frozen_digest", "created_at", "principal"),
        *("network", "resources", "env"),
    },
    "allocations": {"id", "session", "node", "pool", "size", "frozen", "frozen_digest", "ordinal", "opened_at"},
}
FREE = {"projects", "nodes", "readiness", "pins", "wishes", "uploads", "registry_secrets"}
"""Written by hand, so that a declaration that goes missing is missed."""

GUARDED = [table for table in METADATA.sorted_tables if table.name not in FREE]
CELLS = [(table, name) for table in GUARDED for name in frozen_columns(table)]
FREE_CELLS = [
    (table, column.name)
    for table in METADATA.sorted_tables
    for column in table.columns
    if column.name not in frozen_columns(table)
]


def _named(value: object) -> str:
    return value.name if isinstance(value, Table) else str(value)


cells = pytest.mark.parametrize("table,column", CELLS, ids=_named)
guarded = pytest.mark.parametrize("table", GUARDED, ids=_named)


@pytest.fixture(scope="module")
def full_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A row, and more, in every table."""
    path = new_database(tmp_path_factory.mktemp("guards") / "store.db")
    store = SqliteStore(path)
    install(store)
    store.apply(AdmitSession(session(), frozen(), "idem", "sha256:body"), reserved(), AddWish(content("w"), NODE, NOW))
    stop = MoveAllocation(AllocationId("alo_1"), frozenset(AllocationState), AllocationState.CLOSED, NOW, FAULT)
    store.apply(stop, reserved(again="b"), AddKey(key()), AddUpload(upload()), AddAudit(entry("one")))
    store.apply(AddAudit(entry("two")), PutRegistrySecret(RegistrySecret("reg.example", "sealed", NOW)))
    store.close()
    return path


@pytest.fixture
def path(full_database: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(full_database.read_bytes())
    return copy


def _bare(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path)


def _careless(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA recursive_triggers=OFF; PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON"
    )
    return connection


def _ours(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA recursive_triggers=ON; PRAGMA foreign_keys=ON")
    return connection


@pytest.fixture(params=[_bare, _careless, _ours])
def raw(request: pytest.FixtureRequest, path: Path) -> Iterator[sqlite3.Connection]:
    make: Callable[[Path], sqlite3.Connection] = request.param
    connection = make(path)
    yield connection
    connection.close()


def rows(raw: sqlite3.Connection, table: Table) -> list[tuple[Any, ...]]:
    return sorted(raw.execute(f"SELECT * FROM {table.name}").fetchall(), key=repr)


def is_refused(raw: sqlite3.Connection, table: Table, statement: str, values: Any = ()) -> None:
    before = rows(raw, table)
    assert before, f"nothing in {table.name} to try it on"
    with pytest.raises(sqlite3.IntegrityError, match=rf"^(refused: .*|taken) {table.name}$|^datatype mismatch$"):
        raw.execute(statement, values)
    raw.commit()
    assert rows(raw, table) == before


def other(value: Any) -> Any:
    """A different value of the same kind."""
    return value + 1000 if isinstance(value, int) else f"{value}x"


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def quoted(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in names(table))


def marks(table: Table) -> str:
    return ", ".join("?" * len(names(table)))


def key_of(table: Table) -> str:
    return ", ".join(f'"{column.name}"' for column in table.primary_key.columns)


def test_what_must_be_guarded_is_declared() -> None:
    expected = {name: set(METADATA.tables[name].columns.keys()) for name in APPEND_ONLY} | FROZEN
    assert {table.name: set(frozen_columns(table)) for table in GUARDED} == expected
    assert all(table.info["kept"] for table in GUARDED)
    assert METADATA.tables["variants"].info["sealed_by"] == "release_states"
    assert {table.name for table in METADATA.sorted_tables} == expected.keys() | FREE


@cells
def test_a_frozen_column_takes_no_update(raw: sqlite3.Connection, table: Table, column: str) -> None:
    value = raw.execute(f'SELECT "{column}" FROM {table.name}').fetchone()[0]
    for way, new in itertools.product(("", "OR REPLACE ", "OR IGNORE ", "OR FAIL "), (other(value), None, b"\x00")):
        if value is None and new is None:
            continue
        is_refused(raw, table, f'UPDATE {way}{table.name} SET "{column}" = ?', [new])


@pytest.mark.parametrize("table,column", FREE_CELLS, ids=_named)
def test_a_free_column_changes(path: Path, table: Table, column: str) -> None:
    raw = _bare(path)
    new = {"state": "closed", "labels": "{}", "fault": "{}"}.get(column, other(1))
    changed = raw.execute(_one(table, column), [new])
    assert changed.rowcount == 1
    raw.close()


def _one(table: Table, column: str) -> str:
    """Update the first row only, so that unique columns can take the value."""
    first = f"SELECT {key_of(table)} FROM {table.name} LIMIT 1"
    return f'UPDATE {table.name} SET "{column}" = ? WHERE ({key_of(table)}) = ({first})'


@guarded
def test_the_same_values_written_again_are_no_change(raw: sqlite3.Connection, table: Table) -> None:
    before = rows(raw, table)
    raw.execute(f"UPDATE {table.name} SET " + ", ".join(f'"{name}" = "{name}"' for name in names(table)))
    assert rows(raw, table) == before


@guarded
def test_no_row_is_deleted(raw: sqlite3.Connection, table: Table) -> None:
    is_refused(raw, table, f"DELETE FROM {table.name}")
    is_refused(
        raw, table, f"DELETE FROM {table.name} WHERE ({key_of(table)}) IN (SELECT {key_of(table)} FROM {table.name})"
    )


@guarded
def test_no_row_is_inserted_over(raw: sqlite3.Connection, table: Table) -> None:
    """With every key of a row that is there, alone and together, by every kind of insert."""
    row = dict(zip(names(table), raw.execute(f"SELECT {quoted(table)} FROM {table.name}").fetchone(), strict=True))
    for kept in _keys(table):
        values = [value if name in kept or value is None else other(value) for name, value in row.items()]
        if "state" in row:
            values[names(table).index("state")] = "running"
        for way in ("INSERT", "REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL"):
            is_refused(raw, table, f"{way} INTO {table.name} ({quoted(table)}) VALUES ({marks(table)})", values)
        for action in ("NOTHING", f'UPDATE SET "{names(table)[-1]}" = excluded."{names(table)[-1]}"'):
            insertion = f"INSERT INTO {table.name} ({quoted(table)}) VALUES ({marks(table)})"
            is_refused(raw, table, f"{insertion} ON CONFLICT DO {action}", values)


def _keys(table: Table) -> list[set[str]]:
    """Column names of each unique key, as SQLite itself lists them, and of the whole row."""
    with create_engine("sqlite://").connect() as connection:
        table.metadata.create_all(connection)
        listed = connection.exec_driver_sql(f"PRAGMA index_list({table.name})").all()
        unique = [row[1] for row in listed if row[2]]
        found = [{c[2] for c in connection.exec_driver_sql(f"PRAGMA index_info({index})")} for index in unique]
    return [set(table.primary_key.columns.keys()), set(names(table)), *found]


@guarded
def test_no_hidden_rowid_leads_to_a_row(raw: sqlite3.Connection, table: Table) -> None:
    """In a table with a rowid of its own, REPLACE by rowid would meet no key at all."""
    if "seq" in names(table):
        first = raw.execute(f"SELECT rowid, seq FROM {table.name}").fetchone()
        assert first[0] == first[1]
        is_refused(raw, table, f"UPDATE {table.name} SET rowid = rowid + 100")
    else:
        with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
            raw.execute(f"SELECT rowid FROM {table.name}")


def test_an_update_does_not_replace_another_open_allocation(raw: sqlite3.Connection) -> None:
    table = METADATA.tables["allocations"]
    statement = "UPDATE OR REPLACE allocations SET state = 'running' WHERE id = 'alo_1'"
    is_refused(raw, table, statement)


def test_a_second_open_allocation_is_refused(raw: sqlite3.Connection) -> None:
    columns = [name for name in names(METADATA.tables["allocations"]) if name not in ("id", "ordinal", "state")]
    listed = ", ".join(columns)
    copy = f"INSERT OR REPLACE INTO allocations (id, ordinal, state, {listed}) SELECT 'alo_9', 9, ?, {listed}"
    is_refused(raw, METADATA.tables["allocations"], f"{copy} FROM allocations WHERE id = 'alo_1'", ["starting"])
    raw.execute(f"{copy} FROM allocations WHERE id = 'alo_1'", ["closed"])


@pytest.mark.parametrize("column", ["frozen", "frozen_digest"])
@pytest.mark.parametrize("value", [None, ""])
def test_an_open_allocation_names_its_frozen_release(path: Path, column: str, value: str | None) -> None:
    """Refused by a bare connection too, whose foreign keys are off."""
    raw = _bare(path)
    table = METADATA.tables["allocations"]
    row = dict(zip(names(table), raw.execute("SELECT * FROM allocations").fetchone(), strict=True))
    row |= {"id": "alo_9", "session": "ses_9", "ordinal": 9, "state": "running", column: value}
    with pytest.raises(sqlite3.IntegrityError, match=r"CHECK|NOT NULL"):
        raw.execute(f"INSERT INTO allocations ({quoted(table)}) VALUES ({marks(table)})", list(row.values()))
    raw.close()


def test_a_pair_of_id_and_digest_is_a_real_one(path: Path) -> None:
    raw = _ours(path)
    for table, changed in (
        ("sessions", {"seq": 9, "id": "ses_9", "frozen_digest": "sha256:else"}),
        ("allocations", {"id": "alo_9", "ordinal": 9, "state": "closed", "frozen_digest": "sha256:else"}),
        ("allocations", {"id": "alo_9", "ordinal": 9, "state": "closed", "session": "ses_none"}),
    ):
        it = METADATA.tables[table]
        row = dict(zip(names(it), raw.execute(f"SELECT {quoted(it)} FROM {table}").fetchone(), strict=True)) | changed
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            raw.execute(f"INSERT INTO {table} ({quoted(it)}) VALUES ({marks(it)})", list(row.values()))
    raw.close()


def test_a_release_takes_no_variant_after_it_was_registered(raw: sqlite3.Connection) -> None:
    variants = METADATA.tables["variants"]
    statement = "INSERT INTO variants SELECT release, 7, 'linux/riscv64', content_key, document FROM variants"
    is_refused(raw, variants, statement)


@cells
def test_a_frozen_column_takes_no_update_through_sqlalchemy(path: Path, table: Table, column: str) -> None:
    with _through_sqlalchemy(path) as connection:
        old = connection.execute(select(table.c[column])).scalar()
        literal = other(old if isinstance(old, int) else "x")
        with pytest.raises(IntegrityError, match="refused: update of"):
            connection.exec_driver_sql(f'UPDATE {table.name} SET "{column}" = ?', (literal,))


@guarded
def test_nothing_is_deleted_or_inserted_over_through_sqlalchemy(path: Path, table: Table) -> None:
    with _through_sqlalchemy(path) as connection:
        row = dict(connection.execute(select(table)).mappings().first() or {})
        free = {name: row[name] for name in row if name not in frozen_columns(table)} or row
        for statement in (
            table.delete(),
            insert(table).values(row),
            insert(table).prefix_with("OR REPLACE").values(row),
            upsert(table).values(row).on_conflict_do_update(index_elements=table.primary_key.columns, set_=free),
        ):
            with pytest.raises(IntegrityError, match=r"refused|taken"):
                connection.execute(statement)


def _through_sqlalchemy(path: Path) -> Any:
    return sqlite_engine(path, begin="BEGIN IMMEDIATE", pragmas=("foreign_keys=ON",)).connect()


def test_the_triggers_are_those_that_the_tables_declare(path: Path) -> None:
    raw = _bare(path)
    there = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    raw.close()
    expected = {trigger.name for trigger in triggers(METADATA, sqlite.dialect())}
    assert there == expected
    assert {f"{table.name}_{kind}_refused" for table in GUARDED for kind in ("update", "delete", "insert")} <= expected


def test_in_postgresql_the_same_tables_are_guarded() -> None:
    derived = {trigger.name for trigger in triggers(METADATA, postgresql.dialect())}  # type: ignore[no-untyped-call]
    kinds = ("update", "delete", "truncate")
    assert derived == {f"{table.name}_{kind}_refused" for table in GUARDED for kind in kinds} | {
        "variants_seal_refused"
    }


def test_the_migrations_make_the_tables(path: Path) -> None:
    """By Alembic's own comparison, and word for word, which also sees checks, WITHOUT ROWID and conditions."""
    with sqlite_engine(path, begin="BEGIN").connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, METADATA) == []
        migrated = _schema(connection)
    with create_engine("sqlite://").connect() as connection:
        METADATA.create_all(connection)
        assert _schema(connection) == migrated


def _schema(connection: Connection) -> set[tuple[str, frozenset[str]]]:
    """Each table and index with its clauses in whatever order."""
    listed = connection.exec_driver_sql(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger' AND name <> 'alembic_version'"
    )
    return {(name, frozenset(line.strip().rstrip(",") for line in sql.splitlines())) for name, sql in listed}


def test_guards_that_went_missing_come_back_at_the_next_start(path: Path) -> None:
    raw = _bare(path)
    raw.execute("DROP TRIGGER audit_delete_refused")
    raw.execute("DROP TRIGGER images_update_refused")
    raw.execute("CREATE TRIGGER images_update_refused BEFORE UPDATE ON images WHEN 0 BEGIN SELECT 1; END")
    raw.execute("CREATE TRIGGER stray BEFORE INSERT ON nodes BEGIN SELECT 1; END")
    raw.commit()
    migrate(path)
    is_refused(raw, METADATA.tables["audit"], "DELETE FROM audit")
    is_refused(raw, METADATA.tables["images"], "UPDATE images SET name = 'other'")
    assert raw.execute("SELECT count(*) FROM sqlite_master WHERE name = 'stray'").fetchone() == (0,)
    raw.close()


def test_a_start_with_nothing_new_writes_nothing(path: Path) -> None:
    raw = _bare(path)
    before = raw.execute("PRAGMA schema_version").fetchone(), raw.execute("PRAGMA data_version").fetchone()
    migrate(path)
    assert (raw.execute("PRAGMA schema_version").fetchone(), raw.execute("PRAGMA data_version").fetchone()) == before
    raw.close()


def test_migrating_keeps_what_is_there(path: Path) -> None:
    store = SqliteStore(path)
    before = everything(store)
    store.close()
    migrate(path)
    store = SqliteStore(path)
    assert everything(store) == before
    store.close()


def test_an_upgrade_that_breaks_references_is_not_kept(path: Path) -> None:
    raw = _bare(path)
    raw.execute("INSERT INTO wishes VALUES ('node_none', 'x', '2026-01-01')")
    raw.execute("DROP TRIGGER audit_delete_refused")
    raw.commit()
    with pytest.raises(BrokenReferenceError, match="wishes"):
        migrate(path)
    assert not raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit_delete_refused'").fetchall()
    raw.close()


def test_guards_follow_the_tables_that_a_migration_rebuilt(path: Path) -> None:
    """Alembic's batch mode copies a table and drops its triggers without a word."""
    raw = _bare(path)
    raw.executescript("CREATE TABLE copy AS SELECT * FROM audit; DROP TABLE audit; ALTER TABLE copy RENAME TO audit;")
    raw.execute("UPDATE audit SET outcome = 'unguarded'")
    raw.commit()
    engine = sqlite_engine(path, begin="BEGIN IMMEDIATE")
    with engine.begin() as connection:
        sync(connection, METADATA)
    engine.dispose()
    is_refused(raw, METADATA.tables["audit"], "UPDATE audit SET outcome = 'x'")
    raw.close()
