"""One SQLite file: one thread at a time writes, any thread reads.

WAL lets readers see one moment while the writer goes on; synchronous=FULL makes what `apply` returned from
survive a power cut. The writer begins IMMEDIATE: a transaction that reads first and writes later would be told
"database is locked" at once. Who writes holds a lock of ours and does it in its own thread: SQLite would let the
second one sleep and look again, and handing each transaction to a thread for that costs a third of it.
"""

import threading
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import IntegrityError

from sandbay.adapters.store.changes import write
from sandbay.adapters.store.connections import sqlite_engine
from sandbay.adapters.store.queries import answer
from sandbay.adapters.store.triggers import TAKEN
from sandbay.ports.changes import Change, ConflictKind
from sandbay.ports.store import Query

T = TypeVar("T")

_KINDS = {
    "SQLITE_CONSTRAINT_PRIMARYKEY": ConflictKind.TAKEN,
    "SQLITE_CONSTRAINT_UNIQUE": ConflictKind.TAKEN,
    "SQLITE_CONSTRAINT_FOREIGNKEY": ConflictKind.MISSING,
}


class SqliteStore:
    """The store port on the file at `path`."""

    def __init__(self, path: Path) -> None:
        """Open the file, which `migrate` has made."""
        self._readers = sqlite_engine(path, begin="BEGIN", pragmas=("query_only=ON",))
        self._writers = sqlite_engine(path, begin="BEGIN IMMEDIATE", pragmas=("foreign_keys=ON",))
        self._writing = threading.Lock()
        self._closed = False

    def read(self, query: Query[T]) -> T:
        """Answer a query from one moment."""
        self._refuse_closed()
        with self._readers.begin() as connection:
            return answer(connection, query)

    def apply(self, *changes: Change) -> None:
        """Apply all in one durable transaction. Raises `Conflict`."""
        with self._writing:
            self._refuse_closed()
            with self._writers.begin() as connection:
                write(connection, changes, _kind_of)

    def close(self) -> None:
        """Close the file once nobody writes. Repeating it is harmless."""
        with self._writing:
            self._closed = True
            self._writers.dispose()
            self._readers.dispose()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("the store is closed")


def _kind_of(error: IntegrityError) -> ConflictKind | None:
    """What the guard of a key says is a conflict; what the guard of a frozen column says is a fault of ours."""
    if str(error.orig).startswith(TAKEN):
        return ConflictKind.TAKEN
    return _KINDS.get(getattr(error.orig, "sqlite_errorname", ""))
