"""Which database: a file, or what a URL says. No text from here holds a password."""

import re
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.store import Store

_POSTGRESQL = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
_HOST = re.compile(r"[\w.:%-]*")
"""A sign in a password that had to be escaped ends it too early, and its rest would be shown as the host."""
_FORMS = (
    "postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:////PATH, with everything but letters and digits escaped (%40)"
)


def open_store(database: Path | str) -> Store:
    """Migrate an SQLite file or the database at a URL to this version, and open it.

    Refuses with `invalid_body` what is no such URL, and with `database_unavailable` what cannot be reached.
    """
    where = locate(database) if isinstance(database, str) else database
    try:
        migrate(where)
    except OperationalError as error:
        message = f"the database cannot be used: {_said(error, where)}"
        raise RefusedError(Reason.DATABASE_UNAVAILABLE, message) from None
    return SqliteStore(where) if isinstance(where, Path) else PostgresqlStore(where)


def locate(text: str) -> Path | URL:
    """An SQLite file or a PostgreSQL URL. The text is never quoted: what cannot be read may be a password."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise _unreadable() from None
    if url.drivername == "sqlite" and url.database and url.database != ":memory:" and not (url.host or url.query):
        return Path(url.database).absolute()
    if url.drivername not in _POSTGRESQL or not _HOST.fullmatch(url.host or ""):
        raise _unreadable()
    return url


def _unreadable() -> RefusedError:
    return RefusedError(Reason.INVALID_BODY, f"the database's URL must be {_FORMS}", param="database")


def _said(error: OperationalError, where: Path | URL) -> str:
    said = " ".join(str(error.orig).split())
    if isinstance(where, URL):
        for secret in (where.password, where.query.get("password")):
            said = said.replace(str(secret), "***") if secret else said
    return said
