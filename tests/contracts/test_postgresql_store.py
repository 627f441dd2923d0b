"""PostgreSQL: the whole suite of the port, and what only a server can go through."""

import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import URL, Connection, event
from sqlalchemy.exc import IntegrityError

from sandbay.adapters.store.database import open_store
from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault
from sandbay.ports.changes import AddAudit, AddImage, AddProject, AdmitSession, Change, Conflict, ConflictKind, SeeNode
from sandbay.ports.store import Audit, CreatedWith, Images, ProjectOf, Projects, ReadinessRows, Sessions
from tests.contracts.store_killed import killed_while_writing, whole_after, writer
from tests.contracts.store_suite import StoreSuite
from tests.contracts.store_things import (
    ALL,
    NODE,
    NOW,
    PROJECT,
    entry,
    everything,
    frozen,
    held,
    image,
    install,
    project,
    release,
    reserved,
    session,
)
from tests.support.postgres import LOCKED, PASSWORD, Server


class TestPostgresqlStore(StoreSuite):
    @pytest.fixture
    def open_store(self, postgres: Server) -> Callable[[], PostgresqlStore]:
        url = postgres.emptied()
        return lambda: PostgresqlStore(url)


@pytest.fixture
def url(postgres: Server) -> URL:
    return postgres.emptied()


@pytest.fixture
def stores(url: URL) -> Iterator[list[PostgresqlStore]]:
    """Two processes' stores on one database, with the small installation in it."""
    both = [PostgresqlStore(url), PostgresqlStore(url)]
    install(both[0])
    yield both
    for store in both:
        store.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may kill."""
    server = Server()
    yield server
    server.close()


def unavailable(act: Callable[[], object]) -> str:
    """The message of a refusal that passes."""
    with pytest.raises(RefusedError) as caught:
        act()
    assert caught.value.refusal.reason is Reason.DATABASE_UNAVAILABLE
    assert caught.value.refusal.reason.about.retry
    return caught.value.refusal.message


def test_the_port_is_right_from_two_processes(stores: list[PostgresqlStore]) -> None:
    """Slots, keys and names are given once, whichever store is asked; nobody is told a conflict that is none."""

    def admit(number: int) -> ConflictKind | None:
        try:
            admission = AdmitSession(session(number), frozen(), f"key{number % 12}", "body")
            stores[number % 2].apply(admission, reserved(number, slots=7), AddAudit(entry(f"{number}")))
        except Conflict as conflict:
            return conflict.kind
        return None

    with ThreadPoolExecutor(12) as threads:
        outcomes = list(threads.map(admit, range(48)))
    assert outcomes.count(None) == 7
    assert set(outcomes) == {None, ConflictKind.FULL, ConflictKind.TAKEN}
    made = {it.session.id for it in stores[0].read(Sessions(page=ALL))}
    assert made == {f"ses_{number}" for number, outcome in enumerate(outcomes) if outcome is None}
    assert {f"aud_{n}" for n, outcome in enumerate(outcomes) if outcome is None} == {
        it.id for it in stores[1].read(Audit(page=ALL))
    }
    for number, outcome in enumerate(outcomes):
        if outcome is None:
            created = stores[1].read(CreatedWith(PROJECT, f"key{number % 12}"))
            assert created is not None
            assert created.session == f"ses_{number}"


def test_what_nobody_else_touches_is_never_refused(stores: list[PostgresqlStore]) -> None:
    """However crowded it is: repeating is the store's own affair."""

    def write(number: int) -> None:
        for n in range(15):
            stores[number % 2].apply(AddImage(image(f"n{number}-{n}"), 500), SeeNode(NODE, 1, NOW, warm=True))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    assert len(stores[0].read(Images())) == 1 + 8 * 15


def test_what_a_rival_takes_back_is_no_conflict(postgres: Server, stores: list[PostgresqlStore], url: URL) -> None:
    """The name is in the way only while the other transaction lasts; it is waited for, then used."""
    rival = psycopg.connect(host=str(url.query["host"]), user=url.username, dbname=url.database)
    rival.execute("INSERT INTO projects VALUES ('prj_x', 'abc', now(), 1)")
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
    with ThreadPoolExecutor(1) as threads, postgres.admin() as watcher:
        applied = threads.submit(stores[0].apply, AddProject(project("abc")))
        while watcher.execute(waits, [url.database]).fetchone() == (0,):
            assert not applied.done()
        rival.rollback()
        applied.result(30)
    rival.close()
    assert stores[1].read(ProjectOf("abc")) == project("abc")


def test_a_fault_of_ours_is_no_conflict(stores: list[PostgresqlStore], url: URL) -> None:
    """A guard says no to a write that no change of ours makes: it is neither transient nor a conflict."""
    with stores[0]._writers.connect() as connection, pytest.raises(IntegrityError, match="refused: update of images"):
        connection.exec_driver_sql("UPDATE images SET name = 'other'")


def test_every_commit_reaches_the_disk_and_nobody_waits_for_ever(postgres: Server) -> None:
    url = postgres.database()
    with postgres.admin() as admin:
        admin.execute(f"ALTER DATABASE {url.database} SET synchronous_commit = off".encode())
    store = PostgresqlStore(url)
    names = ("synchronous_commit", "default_transaction_isolation", "idle_in_transaction_session_timeout")
    with store._writers.connect() as connection:
        found = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]
        isolation = connection.exec_driver_sql("SHOW transaction_isolation").scalar()
    store.close()
    postgres.drop(url)
    assert (found[0], isolation, found[2]) == ("on", "serializable", "30s")


def test_readers_cannot_write(stores: list[PostgresqlStore]) -> None:
    with stores[0]._readers.begin() as connection, pytest.raises(Exception, match="read-only transaction"):
        connection.exec_driver_sql("UPDATE images SET description = 'x'")


def test_letters_that_it_cannot_hold_stop_nothing(stores: list[PostgresqlStore]) -> None:
    """Names in an image are bytes of its maker's choice, and end in diagnostics."""
    odd = "a\0b\udcff\ud83d"
    fault = Fault(Reason.UNSAFE_LINK, odd, {odd: [odd, "ü😀"]})
    stores[0].apply(
        replace(held(release().variants[0]), readiness=replace(held(release().variants[0]).readiness, fault=fault)),
        AddAudit(replace(entry("odd"), subject=odd, details={"name": odd})),
    )
    seen = "a\ufffdb\ufffd\ufffd"
    [row] = stores[0].read(ReadinessRows())
    assert row.readiness.fault == Fault(Reason.UNSAFE_LINK, seen, {seen: [seen, "ü😀"]})
    assert stores[0].read(Audit())[0].subject == seen
    assert stores[0].read(ProjectOf(odd)) is None


def test_a_server_that_is_gone_is_told_and_comes_back(own_server: Server) -> None:
    store = PostgresqlStore(own_server.database())
    install(store)
    before = everything(store)
    own_server.stop()
    unavailable(lambda: store.read(Projects()))
    assert "not known" not in unavailable(lambda: store.apply(AddProject(project("two"))))
    own_server.start()
    assert everything(store) == before
    own_server.stop()
    own_server.start()
    store.apply(AddProject(project("two")))
    own_server.stop()
    own_server.start()
    assert len(store.read(Projects())) == 2
    store.close()


def _cut(url: URL, connection: Connection) -> None:
    """End the connection from outside, and see that it has ended."""
    pid = connection.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
    with psycopg.connect(host=str(url.query["host"]), user=url.username, dbname=url.database, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_a_connection_lost_before_commit_is_nobodys_business(stores: list[PostgresqlStore], url: URL) -> None:
    store = stores[0]
    cuts: list[bool] = []

    @event.listens_for(store._writers, "after_cursor_execute")
    def cut(connection: Connection, *_: object) -> None:
        if not cuts:
            cuts.append(True)
            _cut(url, connection)

    store.apply(AddProject(project("two")))
    assert cuts
    assert len(store.read(Projects())) == 2


@pytest.mark.parametrize("done", [True, False])
def test_a_connection_lost_at_commit_is_told_as_unknown(
    stores: list[PostgresqlStore], url: URL, monkeypatch: pytest.MonkeyPatch, *, done: bool
) -> None:
    """Written or not, it is never told as a conflict with itself, and nothing is half there."""
    commit = psycopg.Connection.commit

    def cut(connection: psycopg.Connection) -> None:
        if connection.info.transaction_status is not psycopg.pq.TransactionStatus.INTRANS or connection.read_only:
            commit(connection)
            return
        if done:
            commit(connection)
        with psycopg.connect(host=str(url.query["host"]), user=url.username, dbname=url.database) as other:
            monkeypatch.setattr(psycopg.Connection, "commit", commit)
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])
        connection.execute("COMMIT")

    changes: tuple[Change, ...] = (AddProject(project("two")), AddAudit(entry("two")))
    monkeypatch.setattr(psycopg.Connection, "commit", cut)
    assert "not known" in unavailable(lambda: stores[0].apply(*changes))
    assert (len(stores[0].read(Projects())), len(stores[0].read(Audit()))) == ((2, 1) if done else (1, 0))


def test_a_client_that_is_killed_leaves_whole_transactions(postgres: Server) -> None:
    url = postgres.emptied()
    first = 0
    for after in (0, 9, 60):
        last = killed_while_writing(url.render_as_string(), first, after)
        store = PostgresqlStore(url)
        first = whole_after(store, last)
        store.close()


def test_a_server_that_is_killed_leaves_whole_transactions(own_server: Server) -> None:
    """The writer is told that it passes, and never a conflict, whenever the server dies."""
    url = own_server.database()
    first = 0
    for after in (3, 25, 80):
        with writer(url.render_as_string(), first) as program:
            assert program.stdout is not None
            assert program.stderr is not None
            last = first - 1
            for line in program.stdout:
                last = int(line)
                if last == first + after:
                    own_server.kill()
            said = program.stderr.read()
        assert "RefusedError: database_unavailable" in said
        assert "Conflict" not in said.replace("or Conflict", "")
        own_server.start()
        store = PostgresqlStore(url)
        first = whole_after(store, last)
        store.close()


def test_a_password_is_in_no_error(postgres: Server, caplog: pytest.LogCaptureFixture) -> None:
    name = postgres.emptied().database or ""
    good, bad = (postgres.url(name, LOCKED, password) for password in (PASSWORD, "wr0ng/" + PASSWORD))
    store = PostgresqlStore(good)
    install(store)
    store.close()
    store = PostgresqlStore(bad)
    texts = [_told(lambda: store.read(Projects())), _told(lambda: store.apply(AddProject(project("two"))))]
    store.close()
    texts += [_told(lambda: open_store(bad.render_as_string(hide_password=False)))]
    assert "authentication failed" in texts[-1]
    texts += [_told(lambda text=text: open_store(text)) for text in UNREADABLE]  # type: ignore[misc]
    assert [text for text in (*texts, caplog.text) if "s3cr3t" in text] == []


UNREADABLE = [
    *("s3cr3t", "postgresql:s3cr3t", "postgresql://u:s3cr3t", "postgresql://u:a@s3cr3t@host/db", "sqlite://"),
    *(
        "postgresql://u:x@host:s3cr3t/db",
        "mysql://u:s3cr3t@host/db",
        "postgresql://u:x@[s3cr3t/db",
        "sqlite://s3cr3t/x",
    ),
]


def _told(act: Callable[[], object]) -> str:
    """All that the error says, and those behind it."""
    with pytest.raises(RefusedError) as caught:
        act()
    return "".join(traceback.format_exception(caught.value))


def test_many_starts_at_once_make_one_schema(postgres: Server) -> None:
    url = postgres.database(migrated=False)
    gate = threading.Barrier(4)

    def start(_: int) -> None:
        gate.wait(30)
        migrate(url)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(start, range(4)))
    store = PostgresqlStore(url)
    install(store)
    store.close()
    postgres.drop(url)
