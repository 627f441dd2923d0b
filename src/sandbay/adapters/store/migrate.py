"""Bring a database to this version: Alembic's revisions, then the guards that the tables declare."""

from pathlib import Path

from sqlalchemy import URL, Connection, inspect, text

from sandbay.adapters.store.connections import postgresql_engine, sqlite_engine
from sandbay.adapters.store.tables import METADATA
from sandbay.adapters.store.triggers import sync


class BrokenReferenceError(Exception):
    """A migration left rows that refer to rows which are not there. It has been rolled back."""


_MIGRATIONS = Path(__file__).with_name("migrations")
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
    if revision_of(connection) != newest_revision():
        _run_revisions(connection)
    sync(connection, METADATA)
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise BrokenReferenceError(f"{len(broken)} rows, the first in {broken[0][0]}")


def newest_revision() -> str:
    """The last revision that there is: files are named r<revision>_<what>."""
    last = max(path.name for path in _MIGRATIONS.glob("versions/r*.py"))
    return last.removeprefix("r").partition("_")[0]


def revision_of(connection: Connection) -> str | None:
    """Of a database; None of one that has nothing of ours."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def _run_revisions(connection: Connection) -> None:
    # Loaded only where there is something to do: it takes longer than the rest of most starts of the store.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()  # without a file, so that it works from an installed package
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
