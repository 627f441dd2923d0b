"""PostgreSQL's guards: what every database has to refuse, and the ways around that only PostgreSQL has."""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import URL, Connection, Engine, Table
from sqlalchemy.dialects import postgresql

from sandbay.adapters.store.connections import postgresql_engine
from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.adapters.store.tables import METADATA
from sandbay.adapters.store.triggers import frozen_columns, triggers
from tests.contracts.store_guards_suite import (
    GUARDED,
    GuardsSuite,
    broken_pairs,
    fill,
    guarded,
    insertion,
    is_refused,
    open_but_unfrozen,
    rivals,
    rows,
    unfrozen,
)
from tests.contracts.store_things import everything
from tests.support.postgres import Server


@pytest.fixture(scope="module")
def full_database(postgres: Server) -> Iterator[URL]:
    url = postgres.database()
    store = PostgresqlStore(url)
    fill(store)
    store.close()
    yield url
    postgres.drop(url)


@pytest.fixture
def own_database(postgres: Server, full_database: URL) -> Iterator[URL]:
    """A copy that a test may keep changes in."""
    url = postgres.copy(full_database)
    yield url
    postgres.drop(url)


class PostgresqlRaw:
    """A connection of psycopg. It looks at references, and reads everything as text."""

    refusal: type[Exception] = psycopg.IntegrityError
    reference: type[Exception] | tuple[()] = psycopg.errors.ForeignKeyViolation
    updates: Sequence[str] = ["UPDATE", "UPDATE ONLY"]
    says = r"^refused: (update|delete|truncate) of {table}\n|^refused: addition to {table}\n|^duplicate key"

    def __init__(self, url: URL) -> None:
        self.connection = psycopg.connect(host=str(url.query["host"]), user=url.username, dbname=url.database)
        for oid in (16, 20, 23, 1184, 3802):
            self.connection.adapters.register_loader(oid, psycopg.types.string.TextLoader)

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.connection.execute(statement.replace("?", "%s").encode(), values).rowcount

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement.encode()).fetchall()

    def go_on(self) -> None:
        self.connection.rollback()


@pytest.fixture
def raw(full_database: URL) -> Iterator[PostgresqlRaw]:
    it = PostgresqlRaw(full_database)
    yield it
    it.connection.rollback()
    it.connection.close()


class TestPostgresqlGuards(GuardsSuite):
    @pytest.fixture
    def raw(self, raw: PostgresqlRaw) -> PostgresqlRaw:
        return raw

    @guarded
    def test_no_table_is_truncated(self, raw: PostgresqlRaw, table: Table) -> None:
        is_refused(raw, table, f"TRUNCATE {table.name} CASCADE")
        with pytest.raises(psycopg.IntegrityError, match=r"^refused: truncate of "):
            raw.run(f"TRUNCATE nodes, projects, {table.name} RESTART IDENTITY CASCADE")

    @guarded
    def test_no_row_is_inserted_over_by_an_upsert(self, raw: PostgresqlRaw, table: Table) -> None:
        before = rows(raw, table)
        frozen = ", ".join(f'"{name}" = excluded."{name}"' for name in frozen_columns(table))
        key = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
        for values in rivals(raw, table):
            for action in (" DO NOTHING", f" ({key}) DO UPDATE SET {frozen}"):
                try:
                    raw.run(f"{insertion(table)} ON CONFLICT{action}", values)
                except psycopg.IntegrityError as error:
                    assert not isinstance(error, psycopg.errors.ForeignKeyViolation)  # noqa: PT017 - either way is fine
                    raw.go_on()
                assert rows(raw, table) == before

    @guarded
    def test_no_row_is_merged_over(self, raw: PostgresqlRaw, table: Table) -> None:
        """MERGE is of PostgreSQL 15."""
        same = " AND ".join(f"t.{column.name} = s.{column.name}" for column in table.primary_key.columns)
        is_refused(raw, table, f"MERGE INTO {table.name} t USING {table.name} s ON {same} WHEN MATCHED THEN DELETE")

    @unfrozen
    def test_an_open_allocation_names_its_frozen_release(
        self, raw: PostgresqlRaw, column: str, value: str | None
    ) -> None:
        with pytest.raises(psycopg.IntegrityError, match=r"check constraint|not-null constraint"):
            raw.run(*open_but_unfrozen(raw, column, value))

    def test_a_pair_of_id_and_digest_is_a_real_one(self, raw: PostgresqlRaw) -> None:
        for statement, values in broken_pairs(raw):
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                raw.run(statement, values)
            raw.go_on()


def test_the_triggers_are_those_that_the_tables_declare(raw: PostgresqlRaw) -> None:
    there = {name for (name,) in raw.rows("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")}
    expected = {trigger.name for trigger in triggers(METADATA, postgresql.dialect())}  # type: ignore[no-untyped-call]
    kinds = ("update", "delete", "truncate")
    assert there == expected
    assert expected == {f"{table.name}_{kind}_refused" for table in GUARDED for kind in kinds} | {
        "variants_seal_refused"
    }


def _engine(url: URL) -> Engine:
    return postgresql_engine(url, isolation="READ COMMITTED", size=1)


def test_the_migrations_make_the_tables(postgres: Server, full_database: URL) -> None:
    """By Alembic's own comparison, and by what the server itself says of columns, constraints and indexes."""
    migrated = _schema_of(full_database, compare=True)
    made = postgres.database(migrated=False)
    engine = _engine(made)
    METADATA.create_all(engine)
    engine.dispose()
    assert _schema_of(made) == migrated
    postgres.drop(made)


def _schema_of(url: URL, *, compare: bool = False) -> set[tuple[str, ...]]:
    engine = _engine(url)
    with engine.connect() as connection:
        if compare:
            options = {"compare_type": True, "compare_server_default": True}
            assert compare_metadata(MigrationContext.configure(connection, opts=options), METADATA) == []
        found = _schema(connection)
    engine.dispose()
    return found


def _schema(connection: Connection) -> set[tuple[str, ...]]:
    queries = (
        """SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
        WHERE table_schema = 'public'""",
        """SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace""",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    )
    found = (row for query in queries for row in connection.exec_driver_sql(query))
    return {tuple(map(str, row)) for row in found if row[0] != "alembic_version"}


TAMPERED = (
    "DROP TRIGGER audit_delete_refused ON audit",
    "ALTER TABLE keys DISABLE TRIGGER keys_update_refused",
    """CREATE OR REPLACE TRIGGER images_update_refused BEFORE UPDATE ON images FOR EACH ROW WHEN (false)
    EXECUTE FUNCTION refuse()""",
    "CREATE TRIGGER stray BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION refuse()",
    "CREATE OR REPLACE FUNCTION refuse_sealed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
)


def test_guards_that_went_missing_come_back_at_the_next_start(own_database: URL) -> None:
    raw = PostgresqlRaw(own_database)
    for statement in TAMPERED:
        raw.run(statement)
    raw.connection.commit()
    migrate(own_database)
    for table, statement in (
        ("audit", "DELETE FROM audit"),
        ("keys", "UPDATE keys SET principal = 'other'"),
        ("images", "UPDATE images SET name = 'other'"),
        ("variants", "INSERT INTO variants SELECT release, 7, 'x', content_key, document FROM variants"),
    ):
        is_refused(raw, METADATA.tables[table], statement)
    assert raw.rows("SELECT count(*)::text FROM pg_trigger WHERE tgname = 'stray'") == [("0",)]
    raw.connection.close()


def test_a_start_with_nothing_new_writes_nothing(own_database: URL) -> None:
    """Nor does it wait for one that serves, which would wait for it."""
    raw = PostgresqlRaw(own_database)
    ages = (
        "SELECT c.relname, max(t.xmin::text::bigint)::text FROM {} t JOIN pg_class c ON c.oid = t.tableoid GROUP BY 1"
    )
    watched = ("pg_trigger", "pg_proc", "pg_class", "pg_description", "alembic_version")
    before = [raw.rows(ages.format(name)) for name in watched]
    raw.run("UPDATE projects SET revision = revision + 1")
    migrate(own_database)
    assert [raw.rows(ages.format(name)) for name in watched] == before
    raw.connection.close()


def test_migrating_keeps_what_is_there(own_database: URL) -> None:
    store = PostgresqlStore(own_database)
    before = everything(store)
    migrate(own_database)
    assert everything(store) == before
    store.close()
