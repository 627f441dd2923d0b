"""Connections to one SQLite file, set up so that it keeps what it was told."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event

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

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1, pool_use_lifo=True)

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "begin", start)
    return engine
