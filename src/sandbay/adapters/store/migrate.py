"""Bring a database to this version: Alembic's revisions, then the guards that the tables declare."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, text

from sandbay.adapters.store.connections import postgresql_engine, sqlite_engine
from sandbay.adapters.store.tables import METADATA
from sandbay.adapters.store.triggers import sync


class BrokenReferenceError(Exception):
    """A migration left rows that refer to rows which are not there. It has been rolled back."""


_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(hashtextextended('sandbay migrate ' || current_schema(), 0))")


def migrate(where: Path | URL) -> None:
    """Upgrade a SQLite file, made when it is not there, or a PostgreSQL database, in one transaction.

    Harmless when nothing is new: what is done at every start, by several processes at once, too.
    """
    if isinstance(where, Path):
        # Alembic's batch mode drops and renames tables: references are checked once, at the end.
        engine = sqlite_engine(where, begin="BEGIN IMMEDIATE", make=True)
    else:
        engine = postgresql_engine(where, isolation="READ COMMITTED", size=1, settings={"lock_timeout": "0"})
    try:
        with engine.begin() as connection:
            upgrade(connection)
    finally:
        engine.dispose()


def upgrade(connection: Connection) -> None:
    """Upgrade within the connection's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(_ONE_AT_A_TIME)
    command.upgrade(_config(connection), "head")
    sync(connection, METADATA)
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise BrokenReferenceError(f"{len(broken)} rows, the first in {broken[0][0]}")


def _config(connection: Connection) -> Config:
    """Alembic's settings without a file, so that they work from an installed package."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
