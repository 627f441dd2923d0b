"""SQLite: the whole suite of the port, and what only a file can go through."""

import json
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from sandbay.adapters.store.rows import AlteredError
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.domain.ids import ProjectId, SessionId
from sandbay.ports.changes import AddAudit, AddImage, AddProject, ConflictKind
from sandbay.ports.store import Images, OpenAllocations, Projects, SessionOf, Sessions
from tests.contracts.store_files import new_database
from tests.contracts.store_killed import killed_while_writing, whole_after
from tests.contracts.store_suite import StoreSuite
from tests.contracts.store_things import (
    NODE,
    admitted,
    entry,
    everything,
    image,
    install,
    project,
    refuses,
    reserved,
)


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], SqliteStore]:
        path = new_database(tmp_path / "store.db")
        return lambda: SqliteStore(path)


def test_what_was_applied_survives_kill_9_whole(tmp_path: Path) -> None:
    path = new_database(tmp_path / "store.db")
    first = 0
    for after in (0, 9, 60):
        last = killed_while_writing(str(path), first, after)
        store = SqliteStore(path)
        first = whole_after(store, last)
        store.close()
    check = sqlite3.connect(path)
    assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    check.close()


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "none.db")
    with pytest.raises(OperationalError, match="unable to open"):
        store.read(Projects())
    store.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "q?x=1#y.db", "ü.db"])
def test_a_path_is_a_path_whatever_its_letters(tmp_path: Path, name: str) -> None:
    store = SqliteStore(new_database(tmp_path / name))
    store.apply(AddProject(project()))
    assert store.read(Projects()) == (project(),)
    store.close()
    assert [it.name for it in tmp_path.iterdir()] == [name]


def test_two_processes_may_hold_the_file(tmp_path: Path) -> None:
    path = new_database(tmp_path / "store.db")
    one, two = SqliteStore(path), SqliteStore(path)
    install(one)
    two.apply(admitted(), reserved())
    assert everything(one) == everything(two)
    assert len(one.read(OpenAllocations(NODE))) == 1
    one.close()
    two.close()


def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    store = SqliteStore(new_database(tmp_path / "store.db"))
    with store._writers.connect() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers")
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas}
    store.close()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "recursive_triggers": 1}


def test_readers_cannot_write(tmp_path: Path) -> None:
    store = SqliteStore(new_database(tmp_path / "store.db"))
    store.apply(AddImage(image(), 1))
    with store._readers.begin() as connection, pytest.raises(OperationalError, match="readonly"):
        connection.exec_driver_sql("UPDATE images SET description = 'x'")
    store.close()


def test_a_frozen_release_that_was_altered_in_the_file_is_no_answer(tmp_path: Path) -> None:
    """Whoever drops the guards can write anything; what is read is still held against its digest."""
    path = new_database(tmp_path / "store.db")
    store = SqliteStore(path)
    install(store)
    store.apply(admitted(), reserved())
    store.close()
    raw = sqlite3.connect(path)
    raw.execute("DROP TRIGGER frozen_releases_update_refused")
    [document] = raw.execute("SELECT document FROM frozen_releases").fetchone()
    swapped = json.dumps(json.loads(document) | {"reference": "base"}, separators=(",", ":"), sort_keys=True)
    raw.execute("UPDATE frozen_releases SET document = ?", [swapped])
    raw.commit()
    raw.close()
    store = SqliteStore(path)
    for query in (SessionOf(SessionId("ses_1")), Sessions(ProjectId("prj_one")), OpenAllocations(NODE)):
        with pytest.raises(AlteredError):
            store.read(query)
    store.apply(AddAudit(entry("noticed")))
    assert len(store.read(Images())) == 1
    store.close()


def test_ready_without_a_pin_is_no_place(tmp_path: Path) -> None:
    """The port writes both together; a Core of another version, or a hand, need not."""
    path = new_database(tmp_path / "store.db")
    store = SqliteStore(path)
    install(store)
    store.apply(admitted())
    raw = sqlite3.connect(path)
    raw.execute("DELETE FROM pins")
    raw.commit()
    raw.close()
    refuses(store, reserved(), ConflictKind.STALE, "unpinned")
    store.close()


def test_two_writers_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    """Each change reads before it writes: what it read has to hold until it has written."""
    path = new_database(tmp_path / "store.db")
    stores = [SqliteStore(path), SqliteStore(path)]

    def write(number: int) -> None:
        for n in range(25):
            stores[number].apply(AddImage(image(f"n{number}-{n}"), 50))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, range(2)))
    assert len(stores[0].read(Images())) == 50
    for store in stores:
        store.close()
