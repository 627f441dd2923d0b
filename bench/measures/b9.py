"""B9: admissions a second, each in one transaction, against the same statements on a bare connection.

The bare side replays what a third database was seen to be told for admissions of the same kind: no Python of ours,
no check of what comes back, the database's own default of isolation.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from shutil import copyfile
from typing import Any, TypeVar

import psycopg
from sqlalchemy import URL, Engine, event

from bench.figures import Figure, Target, per_second, ratio
from bench.host import folder
from bench.rounds import interleaved
from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.ports.changes import AddAudit, Change, PutNode
from sandbay.ports.store import Store
from tests.contracts.store_things import admitted, digest, entry, frozen, held, install, node, release, reserved
from tests.support.postgres import Server, missing

T = TypeVar("T")
Statements = Sequence[tuple[str, Any]]

_EACH, _NODES, _AT_ONCE = 200, 64, 4
"""Admissions of one measurement, all on one node; nodes; clients of the crowd."""
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON")


@dataclass(frozen=True)
class _Database:
    """Ours, the one whose statements are written down, and bare transactions, each client of its own."""

    name: str
    target: Target
    ours: Store
    scribe: Store
    bare: Sequence[Callable[[Statements], None]]


def measure(rounds: int = 7) -> Iterator[Figure]:
    """One client on SQLite; one, and several at once, on PostgreSQL."""
    with folder("sqlite") as place, ExitStack() as stack:
        yield _figure(_sqlite(place, stack), 1, rounds)
    lacking = missing()
    if lacking is not None:
        yield Figure("B9", "admissions a second, PostgreSQL", _POSTGRESQL, None, note=f"this machine lacks {lacking}")
        return
    with ExitStack() as stack:
        database = _postgresql(stack)
        for clients in (1, _AT_ONCE):
            yield _figure(database, clients, rounds)


_SQLITE = Target(must=0.4, aim=0.6, at_least=True)
_POSTGRESQL = Target(must=0.5, aim=0.8, at_least=True)
_NUMBERS = count()
_RELEASE = release()


def _figure(database: _Database, clients: int, rounds: int) -> Figure:
    def ours() -> float:
        return _rate(_numbers(), clients, [lambda number: database.ours.apply(*_admission(number))] * clients)

    def bare() -> float:
        return _rate(_written_down(database.scribe), clients, database.bare)

    took = interleaved(rounds, {"ours": ours, "bare": bare})
    return Figure(
        bench="B9",
        what=f"admissions a second, {database.name}, {clients} at once",
        target=database.target,
        value=ratio(took["ours"], took["bare"]),
        ours=per_second(took["ours"]),
        theirs=per_second(took["bare"]),
        command="the statements of such admissions, and COMMIT, from the driver",
    )


def _rate(things: Sequence[T], clients: int, do: Sequence[Callable[[T], None]]) -> float:
    """A second, each client doing its share of the things in its own thread."""

    def share(client: int) -> None:
        for thing in things[client::clients]:
            do[client](thing)

    with ThreadPoolExecutor(clients) as pool:
        begun = time.perf_counter()
        list(pool.map(share, range(clients)))
        return len(things) / (time.perf_counter() - begun)


def _numbers() -> list[int]:
    return [next(_NUMBERS) for _ in range(_EACH)]


def _admission(number: int) -> Sequence[Change]:
    """What `app.admit_session` applies for a request with an idempotency key, the frozen document made here, too."""
    it, on = frozen(_RELEASE), node(str(number // _EACH % _NODES)).id
    admission = replace(admitted(number, it), idempotency_key=f"key-{number}", body_hash=digest("body"))
    done = AddAudit(entry(str(number), f"ses_{number}"))
    return admission, reserved(number, it, slots=_EACH, on=on), done


def _written_down(store: Store) -> list[Statements]:
    """The statements of as many admissions as one measurement has."""
    written: list[Statements] = []
    for number in _numbers():
        with _heard() as told:
            store.apply(*_admission(number))
        written.append(told)
    return written


@contextmanager
def _heard() -> Iterator[list[tuple[str, Any]]]:
    told: list[tuple[str, Any]] = []

    def hear(*said: Any) -> None:
        told.append((said[2], said[3]))

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield told
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


def _install(store: Store) -> None:
    install(store)
    for number in range(_NODES):
        it = node(str(number))
        store.apply(PutNode(it), held(_RELEASE.variants[0], it.id))


def _sqlite(place: Path, stack: ExitStack) -> _Database:
    first, *others = (place / name for name in ("ours", "scribe", "bare"))
    migrate(first)
    with closing(SqliteStore(first)) as store:
        _install(store)
    for other in others:
        copyfile(first, other)
    stores = [stack.enter_context(closing(SqliteStore(path))) for path in (first, others[0])]
    connection = sqlite3.connect(others[1], isolation_level=None, check_same_thread=False)
    stack.enter_context(closing(connection))
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")

    def bare(statements: Statements) -> None:
        for text, values in statements:
            connection.execute(text, values).fetchall()
        connection.execute("COMMIT")

    return _Database("SQLite", _SQLITE, stores[0], stores[1], [bare])


def _postgresql(stack: ExitStack) -> _Database:
    server = stack.enter_context(closing(Server(fsync=True)))
    first = server.database()
    with closing(PostgresqlStore(first)) as store:
        _install(store)
    scribe, replayed = server.copy(first), server.copy(first)
    ours, theirs = (stack.enter_context(closing(PostgresqlStore(url))) for url in (first, scribe))
    return _Database("PostgreSQL", _POSTGRESQL, ours, theirs, [_bare(replayed, stack) for _ in range(_AT_ONCE)])


def _bare(url: URL, stack: ExitStack) -> Callable[[Statements], None]:
    host = str(url.query["host"])
    connection = stack.enter_context(closing(psycopg.connect(host=host, user=url.username, dbname=url.database)))

    def bare(statements: Statements) -> None:
        for text, values in statements:
            cursor = connection.execute(text, values)
            if cursor.description is not None:
                cursor.fetchall()
        connection.commit()

    return bare
