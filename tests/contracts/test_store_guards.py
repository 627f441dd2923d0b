"""SQLite's guards: what every database has to refuse, and the ways around that only SQLite has.

Every way is tried on connections set up as ours and on bare ones of `sqlite3`, which keep no foreign keys and let
REPLACE delete rows without asking a DELETE trigger.
"""

# ruff: noqa: S608 - the names in these statements are our own

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Table, create_engine, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import IntegrityError

from sandbay.adapters.store import sqlite as sqlite_store
from sandbay.adapters.store.connections import sqlite_engine
from sandbay.adapters.store.migrate import BrokenReferenceError, migrate
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.adapters.store.tables import METADATA
from sandbay.adapters.store.triggers import frozen_columns, sync, triggers
from sandbay.domain.binding import Binding, Mode
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import Subject
from sandbay.ports.standing import RowsOf
from sandbay.ports.store import Projects
from tests.contracts.store_files import new_database
from tests.contracts.store_guards_suite import (
    APPEND_ONLY,
    FREE,
    FROZEN,
    GUARDED,
    GuardsSuite,
    another,
    broken_pairs,
    cells,
    copy_of_allocation,
    fill,
    guarded,
    insertion,
    is_refused,
    names,
    open_but_unfrozen,
    rivals,
    unfrozen,
)
from tests.contracts.store_things import everything


@pytest.fixture(scope="module")
def full_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = new_database(tmp_path_factory.mktemp("guards") / "store.db")
    store = SqliteStore(path)
    fill(store)
    store.close()
    return path


@pytest.fixture
def path(full_database: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(full_database.read_bytes())
    return copy


class SqliteRaw:
    """A connection of `sqlite3`."""

    refusal: type[Exception] = sqlite3.IntegrityError
    reference: type[Exception] | tuple[()] = ()
    updates: Sequence[str] = [f"UPDATE {way}" for way in ("", "OR REPLACE", "OR IGNORE", "OR FAIL")]
    says = r"^(refused: .*|taken) {table}$|^datatype mismatch$"

    def __init__(self, path: Path, *pragmas: str) -> None:
        self.connection = sqlite3.connect(path)
        for pragma in pragmas:
            self.connection.execute(f"PRAGMA {pragma}")

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.connection.execute(statement, values).rowcount

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def go_on(self) -> None:
        self.connection.commit()


def _bare(path: Path) -> SqliteRaw:
    return SqliteRaw(path)


def _careless(path: Path) -> SqliteRaw:
    return SqliteRaw(path, "recursive_triggers=OFF", "foreign_keys=OFF", "ignore_check_constraints=ON")


def _ours(path: Path) -> SqliteRaw:
    it = SqliteRaw(path, "recursive_triggers=ON", "foreign_keys=ON")
    it.reference = sqlite3.IntegrityError
    return it


@pytest.fixture
def bare(path: Path) -> Iterator[sqlite3.Connection]:
    connection = _bare(path).connection
    yield connection
    connection.close()


class TestSqliteGuards(GuardsSuite):
    @pytest.fixture(params=[_bare, _careless, _ours])
    def raw(self, request: pytest.FixtureRequest, path: Path) -> Iterator[SqliteRaw]:
        make: Callable[[Path], SqliteRaw] = request.param
        it = make(path)
        yield it
        it.connection.close()

    @cells
    def test_a_frozen_column_takes_no_value_of_another_kind(self, raw: SqliteRaw, table: Table, column: str) -> None:
        for update in raw.updates:
            is_refused(raw, table, f'{update} {table.name} SET "{column}" = ?', [b"\x00"])

    @guarded
    def test_no_row_is_replaced(self, raw: SqliteRaw, table: Table) -> None:
        for values in rivals(raw, table):
            for way in ("REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL"):
                is_refused(raw, table, insertion(table, way), values)
            last = names(table)[-1]
            for action in ("NOTHING", f'UPDATE SET "{last}" = excluded."{last}"'):
                is_refused(raw, table, f"{insertion(table)} ON CONFLICT DO {action}", values)

    @guarded
    def test_no_hidden_rowid_leads_to_a_row(self, raw: SqliteRaw, table: Table) -> None:
        """In a table with a rowid of its own, REPLACE by rowid would meet no key at all."""
        if "seq" in names(table):
            first = raw.rows(f"SELECT rowid, seq FROM {table.name}")[0]
            assert first[0] == first[1]
            is_refused(raw, table, f"UPDATE {table.name} SET rowid = rowid + 100")
        else:
            with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
                raw.rows(f"SELECT rowid FROM {table.name}")

    def test_an_update_does_not_replace_another_open_allocation(self, raw: SqliteRaw) -> None:
        table = METADATA.tables["allocations"]
        is_refused(raw, table, "UPDATE OR REPLACE allocations SET state = 'running' WHERE id = 'alo_1'")
        is_refused(raw, table, copy_of_allocation("INSERT OR REPLACE"), ["starting"])


def test_what_must_be_guarded_is_declared() -> None:
    expected = {name: set(METADATA.tables[name].columns.keys()) for name in APPEND_ONLY} | FROZEN
    assert {table.name: set(frozen_columns(table)) for table in GUARDED} == expected
    assert all(table.info["kept"] for table in GUARDED)
    assert METADATA.tables["variants"].info["sealed_by"] == "release_states"
    assert {table.name for table in METADATA.sorted_tables} == expected.keys() | FREE


@unfrozen
def test_an_open_allocation_names_its_frozen_release(path: Path, column: str, value: str | None) -> None:
    """Refused by a bare connection too, whose foreign keys are off."""
    raw = _bare(path)
    with pytest.raises(sqlite3.IntegrityError, match=r"CHECK|NOT NULL"):
        raw.run(*open_but_unfrozen(raw, column, value))
    raw.connection.close()


def test_a_pair_of_id_and_digest_is_a_real_one(path: Path) -> None:
    raw = _ours(path)
    for statement, values in broken_pairs(raw):
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            raw.run(statement, values)
    raw.connection.close()


@cells
def test_a_frozen_column_takes_no_update_through_sqlalchemy(path: Path, table: Table, column: str) -> None:
    with _through_sqlalchemy(path) as connection:
        old = connection.execute(select(table.c[column])).scalar()
        literal = another(table.c[column], old)
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


def test_the_triggers_are_those_that_the_tables_declare(bare: sqlite3.Connection) -> None:
    there = {row[0] for row in bare.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
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
    """Each table and index with its clauses in whatever order. Of a table that was renamed, SQLite quotes the name."""
    listed = connection.exec_driver_sql(
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'trigger' AND name <> 'alembic_version'"
    )
    return {
        (name, frozenset(line.strip().rstrip(",") for line in sql.replace(f'"{name}"', name, 1).splitlines()))
        for name, sql in listed
    }


def test_guards_that_went_missing_come_back_at_the_next_start(path: Path) -> None:
    raw = SqliteRaw(path)
    raw.connection.execute("DROP TRIGGER audit_delete_refused")
    raw.connection.execute("DROP TRIGGER images_update_refused")
    raw.connection.execute("CREATE TRIGGER images_update_refused BEFORE UPDATE ON images WHEN 0 BEGIN SELECT 1; END")
    raw.connection.execute("CREATE TRIGGER stray BEFORE INSERT ON nodes BEGIN SELECT 1; END")
    raw.connection.commit()
    migrate(path)
    is_refused(raw, METADATA.tables["audit"], "DELETE FROM audit")
    is_refused(raw, METADATA.tables["images"], "UPDATE images SET name = 'other'")
    assert raw.connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'stray'").fetchone() == (0,)
    raw.connection.close()


def test_a_start_with_nothing_new_writes_nothing(path: Path) -> None:
    raw = SqliteRaw(path)
    before = (
        raw.connection.execute("PRAGMA schema_version").fetchone(),
        raw.connection.execute("PRAGMA data_version").fetchone(),
    )
    migrate(path)
    assert (
        raw.connection.execute("PRAGMA schema_version").fetchone(),
        raw.connection.execute("PRAGMA data_version").fetchone(),
    ) == before
    raw.connection.close()


def test_a_start_with_nothing_new_runs_no_revision(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Connection] = []
    monkeypatch.setattr("sandbay.adapters.store.migrate._run_revisions", ran.append)
    migrate(path)
    assert ran == []
    raw = SqliteRaw(path)
    raw.connection.execute("UPDATE alembic_version SET version_num = '0001'")
    raw.connection.commit()
    raw.connection.close()
    migrate(path)
    assert len(ran) == 1


def test_migrating_keeps_what_is_there(path: Path) -> None:
    store = SqliteStore(path)
    before = everything(store)
    store.close()
    migrate(path)
    store = SqliteStore(path)
    assert everything(store) == before
    store.close()


def test_an_upgrade_that_breaks_references_is_not_kept(path: Path) -> None:
    raw = SqliteRaw(path)
    raw.connection.execute("INSERT INTO wishes VALUES ('node_none', 'x', '2026-01-01', 2)")
    raw.connection.execute("DROP TRIGGER audit_delete_refused")
    raw.connection.commit()
    with pytest.raises(BrokenReferenceError, match="wishes"):
        migrate(path)
    assert not raw.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit_delete_refused'").fetchall()
    raw.connection.close()


def test_guards_follow_the_tables_that_a_migration_rebuilt(path: Path) -> None:
    """Alembic's batch mode copies a table and drops its triggers without a word."""
    raw = SqliteRaw(path)
    raw.connection.executescript(
        "CREATE TABLE copy AS SELECT * FROM audit; DROP TABLE audit; ALTER TABLE copy RENAME TO audit;"
    )
    raw.connection.execute("UPDATE audit SET outcome = 'unguarded'")
    raw.connection.commit()
    engine = sqlite_engine(path, begin="BEGIN IMMEDIATE")
    with engine.begin() as connection:
        sync(connection, METADATA)
    engine.dispose()
    is_refused(raw, METADATA.tables["audit"], "UPDATE audit SET outcome = 'x'")
    raw.connection.close()


def test_what_a_project_preferred_is_its_binding_after_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    engine = sqlite_engine(path, begin="BEGIN IMMEDIATE", make=True)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("path_separator", "os")
        config.set_main_option("script_location", str(Path(sqlite_store.__file__).with_name("migrations")))
        config.attributes["connection"] = connection
        command.upgrade(config, "0009")
        for name, prefers in (("a", "web:7"), ("b", None)):
            values = (f"prj_{name}", name, "2026-01-02 03:04:05.000000", prefers, 4)
            connection.exec_driver_sql("INSERT INTO projects VALUES (?, ?, ?, ?, ?)", values)
    engine.dispose()
    migrate(path)
    store = SqliteStore(path)
    found = [(it.subject, it.mode, it.reference, it.written.revision) for it in store.read(RowsOf(Binding))]
    assert found == [(Subject.of_project(ProjectId("prj_a")), Mode.PREFER, "web:7", 1)]
    assert [(it.name, it.revision, it.scope_required) for it in store.read(Projects())] == [
        ("a", 4, False),
        ("b", 4, False),
    ]
    store.close()
