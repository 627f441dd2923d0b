"""A whole database as one file and back: SQLite by its own copying, PostgreSQL by its own programs.

Both see one moment, whatever is written meanwhile.
"""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Engine, inspect

from sandbay.adapters.store.connections import postgresql_engine, sqlite_engine
from sandbay.adapters.store.migrate import newest_revision, revision_of
from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.store import Store

Database = Path | URL
"""An SQLite file, or where a PostgreSQL database is."""


def kind_of(where: Database) -> str:
    """What can take up a dump: one of the same kind."""
    return "sqlite" if isinstance(where, Path) else "postgresql"


def dump(where: Database, target: Path) -> None:
    """Write it to a new file. Refuses with `database_unavailable`; with `host_unfit` where programs are missing."""
    if isinstance(where, URL):
        _run(where, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")
        return
    if not where.exists():
        raise RefusedError(Reason.DATABASE_UNAVAILABLE, f"there is no database {where}")
    with (
        closing(sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")


def load(source: Path, where: Database) -> None:
    """Make the database from a dump. What is there must be `is_empty`; it is there whole or not at all."""
    if isinstance(where, URL):
        _run(
            where, "pg_restore", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", str(source)
        )
        return
    part = where.with_name(f"{where.name}.part")
    shutil.copyfile(source, part)
    descriptor = os.open(part, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.replace(where)


def is_empty(where: Database) -> bool:
    """Whether nobody has an installation in it."""
    if isinstance(where, Path):
        return not where.exists()
    engine = _engine(where)
    try:
        with engine.connect() as connection:
            return not inspect(connection).has_table("alembic_version")
    finally:
        engine.dispose()


def newest() -> str:
    """The revision of databases of this version."""
    return newest_revision()


def is_known(revision: str) -> bool:
    """Whether this version can bring a database of that revision to its own."""
    return revision <= newest_revision()


@contextmanager
def reading(where: Database) -> Iterator[Store]:
    """A store to be read from, within the block. Refuses with `host_unfit` a database of another version."""
    engine = _engine(where)
    try:
        with engine.connect() as connection:
            found = revision_of(connection)
    finally:
        engine.dispose()
    if found != newest_revision():
        message = "the database is of another version of Sandbay; start this one with it first, or use that one"
        raise RefusedError(Reason.HOST_UNFIT, message)
    store = SqliteStore(where) if isinstance(where, Path) else PostgresqlStore(where)
    try:
        yield store
    finally:
        store.close()


def _engine(where: Database) -> Engine:
    if isinstance(where, Path):
        return sqlite_engine(where, begin="BEGIN")
    return postgresql_engine(where, isolation="READ COMMITTED", size=1, settings={})


def _run(where: URL, program: str, *arguments: str) -> None:
    """What it connects to stands in its environment: of arguments, every user of the host can read a password."""
    if shutil.which(program) is None:
        message = f"{program} is missing; apt-get install postgresql-client"
        raise RefusedError(Reason.HOST_UNFIT, message, details={"missing": [program]})
    query = {name: value if isinstance(value, str) else value[0] for name, value in where.query.items()}
    said = {
        "PGHOST": where.host or query.get("host"),
        "PGPORT": str(where.port) if where.port else query.get("port"),
        "PGUSER": where.username or query.get("user"),
        "PGPASSWORD": where.password or query.get("password"),
        "PGDATABASE": where.database or query.get("dbname"),
        "PGOPTIONS": query.get("options"),
    }
    environment = {**os.environ, **{name: str(value) for name, value in said.items() if value}}
    target = () if program == "pg_dump" else (f"--dbname={where.database}",)
    done = subprocess.run(
        [program, "--no-password", *target, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise RefusedError(Reason.DATABASE_UNAVAILABLE, f"{program} ended with {done.returncode}: {lines[0]}")
