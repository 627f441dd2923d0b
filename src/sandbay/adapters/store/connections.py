"""Connections, set up so that the database keeps what it was told."""

import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.types.string import StrDumper
from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event

_BUSY_SECONDS = 20.0
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "recursive_triggers=ON")


def sqlite_engine(path: Path, *, begin: str, make: bool = False, pragmas: tuple[str, ...] = ()) -> Engine:
    """Connections whose transactions start with `begin`. `make`: the file need not be there yet.

    Any thread may take one; each is one thread's at a time.
    """
    file = f"file:{quote(str(path.absolute()))}?mode={'rwc' if make else 'rw'}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            file, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in (*_PRAGMAS, *pragmas):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1, pool_use_lifo=True, hide_parameters=True
    )

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "begin", start)
    return engine


_LIBPQ = {"connect_timeout": "10", "keepalives_idle": "30", "tcp_user_timeout": "30000", "client_encoding": "utf8"}
_SETTINGS = {
    # Who stops in the middle of a transaction, frozen or cut off, would keep the others waiting for its locks.
    "idle_in_transaction_session_timeout": "30s",
    "lock_timeout": "30s",
}
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"


def postgresql_engine(url: URL, *, isolation: str, size: int, settings: dict[str, str] | None = None) -> Engine:
    """At most `size` connections, each with these settings of the server, whose transactions are isolated so.

    Whoever finds all of them taken waits. What the URL says of libpq's own options wins over ours.
    """
    engine = create_engine(
        url.set(drivername="postgresql+psycopg", query={**_LIBPQ, **url.query}),
        isolation_level=isolation,
        pool_size=size,
        max_overflow=0,
        pool_use_lifo=True,
        hide_parameters=True,  # they hold what Sessions get as environment, and errors are logged
        json_serializer=lambda value: json.dumps(_printable(value)),
    )

    def set_up(connection: psycopg.Connection[Any], _: object) -> None:
        connection.adapters.register_dumper(str, _PrintableDumper)
        connection.autocommit = True
        for name, value in {**_SETTINGS, **(settings or {})}.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        connection.execute(_DURABLE)
        connection.autocommit = False

    event.listen(engine, "connect", set_up)
    return engine


class _PrintableDumper(StrDumper):
    """Text as PostgreSQL can hold it."""

    def dump(self, obj: str) -> Any:
        """Encode."""
        return super().dump(_text(obj))


def _text(text: str) -> str:
    """NUL, and halves of surrogate pairs, are no text in PostgreSQL. They come in names that images made up."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _printable(value: Any) -> Any:
    """JSON-ready data with only such text in it."""
    match value:
        case str():
            return _text(value)
        case dict():
            return {_text(name): _printable(item) for name, item in value.items()}
        case list() | tuple():
            return [_printable(item) for item in value]
        case _:
            return value
