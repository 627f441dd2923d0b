"""A PostgreSQL database: any number of processes write, and each transaction is as good as alone.

Every change looks at what it relies on and then writes. SERIALIZABLE makes that right for all of them, those to
come included: of two transactions of which one wrote what the other looked at, one is told to repeat. Row locks
would have to be chosen change by change, cannot lock what is not there yet (a free slot, an unused name), and one
forgotten would go unnoticed.

The first attempt runs beside other writers. One that has to repeat runs with no other writer, so it ends: there
is nobody left to meet. The two differ in the mode in which they lock one table, before the transaction's first
look. What a key or a reference refused beside others is repeated, too, since only alone it is certain to be what
the others have left. Where tables are small, strangers share a page of an index and count as having seen each
other; so after a repetition the next few go alone at once, which is quicker than doing every other one twice.

Where the connection is lost before COMMIT was sent, nothing was written, and it is repeated. Afterwards nobody knows,
and repeating it could meet its own rows and call them a conflict: that is told as `database_unavailable`, and
who asked looks again.
"""

from typing import TypeVar

import psycopg
from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from sandbay.adapters.store.changes import write
from sandbay.adapters.store.connections import postgresql_engine
from sandbay.adapters.store.queries import answer
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.changes import Change, ConflictKind
from sandbay.ports.store import Query

T = TypeVar("T")

_READERS, _WRITERS = 8, 4
_BESIDE_OTHERS = "LOCK TABLE alembic_version IN ROW EXCLUSIVE MODE"
_ALONE = "LOCK TABLE alembic_version IN SHARE ROW EXCLUSIVE MODE"
_ATTEMPTS = 3
_CAREFUL = 30
"""So many changes go alone at once after one had to be repeated."""
_RETRY_SECONDS = 5
_COMPLETION_UNKNOWN = "40003"

_KINDS: dict[type[Exception], ConflictKind] = {
    psycopg.errors.UniqueViolation: ConflictKind.TAKEN,
    psycopg.errors.ForeignKeyViolation: ConflictKind.MISSING,
}
_PASSING = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction)
"""What passes without anybody changing the request: lost, refused and ended connections, shutdown, failover, no room,
locks that did not come free, and being told to repeat."""


class PostgresqlStore:
    """The store port on the database at `url`, which `migrate` has made."""

    def __init__(self, url: URL) -> None:
        """Connect when first asked."""
        self._readers = postgresql_engine(url, isolation="REPEATABLE READ", size=_READERS).execution_options(
            postgresql_readonly=True
        )
        # Reading a whole table, however small, is to have looked at everything in it: all that others then write.
        self._writers = postgresql_engine(
            url, isolation="SERIALIZABLE", size=_WRITERS, settings={"enable_seqscan": "off"}
        )
        self._careful = 0
        self._closed = False

    def read(self, query: Query[T]) -> T:
        """Answer a query from one moment. Asked again once when the connection is lost."""
        self._refuse_closed()
        last: Exception | None = None
        for _ in range(2):
            try:
                with self._readers.begin() as connection:
                    return answer(connection, query)
            except (DBAPIError, NoConnectionError) as error:
                last = _passing(error)
        raise _unavailable() from last

    def apply(self, *changes: Change) -> None:
        """Apply all in one durable transaction. Raises `Conflict`."""
        self._refuse_closed()
        last: Exception | None = None
        for number in range(_ATTEMPTS):
            attempt = _Attempt(changes, alone=number > 0 or self._careful > 0)
            try:
                with self._writers.connect() as connection:
                    attempt.run(connection)
                self._careful = max(self._careful - 1, 0)
                return
            except IntegrityError as error:
                if attempt.alone:
                    raise
                last = error
            except (DBAPIError, NoConnectionError) as error:
                last = _passing(error)
                if attempt.committing and not _rolled_back(last):
                    raise _unavailable("whether the change was made is not known") from last
            self._careful = _CAREFUL
        raise _unavailable() from last

    def close(self) -> None:
        """Close the connections. Repeating it is harmless."""
        self._closed = True
        self._writers.dispose()
        self._readers.dispose()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("the store is closed")


class _Attempt:
    """One transaction. `committing`: COMMIT has been sent."""

    def __init__(self, changes: tuple[Change, ...], *, alone: bool) -> None:
        self._changes, self.alone = changes, alone
        self.committing = False

    def run(self, connection: Connection) -> None:
        """Write it all; whoever gives the connection back rolls back what was not committed."""
        connection.exec_driver_sql(_ALONE if self.alone else _BESIDE_OTHERS)
        write(connection, self._changes, _kind_of if self.alone else _uncertain)
        self.committing = True
        connection.commit()


def _kind_of(error: IntegrityError) -> ConflictKind | None:
    """What a key or a reference says is a conflict; what the guard of a frozen column says is a fault of ours."""
    return next((kind for refusal, kind in _KINDS.items() if isinstance(error.orig, refusal)), None)


def _uncertain(_: IntegrityError) -> None:
    """Beside others it may be what one of them writes and takes back."""


def _passing(error: DBAPIError | NoConnectionError) -> Exception:
    """The error, when it passes; what does not is a fault of ours and is raised."""
    if isinstance(error, DBAPIError) and not (error.connection_invalidated or isinstance(error.orig, _PASSING)):
        raise error
    return error


def _rolled_back(error: Exception) -> bool:
    """Whether the server itself has said that the transaction is undone and may be repeated."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    return state.startswith("40") and state != _COMPLETION_UNKNOWN


def _unavailable(more: str = "") -> RefusedError:
    message = "the database cannot be reached now" + (f"; {more}" if more else "")
    return RefusedError(Reason.DATABASE_UNAVAILABLE, message, details={"retry_after": _RETRY_SECONDS})
