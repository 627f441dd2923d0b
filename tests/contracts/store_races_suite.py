"""Many threads at one store: exactly as many win as there is room for."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sandbay.ports.changes import (
    AddImage,
    AddRelease,
    AdmitSession,
    Change,
    Conflict,
    ConflictKind,
    MoveChannel,
)
from sandbay.ports.store import CreatedWith, Images, OpenAllocations, Sessions, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    NODE,
    NOW,
    PROJECT,
    WEB,
    admitted,
    frozen,
    image,
    published,
    release,
    reserved,
    session,
    variant,
)


def race(store: Store, tries: Sequence[tuple[Change, ...]]) -> list[ConflictKind | None]:
    """What became of each try, all started at once; None: applied."""
    gate = threading.Barrier(len(tries))

    def run(changes: tuple[Change, ...]) -> ConflictKind | None:
        gate.wait(30)
        try:
            store.apply(*changes)
        except Conflict as conflict:
            return conflict.kind
        return None

    with ThreadPoolExecutor(len(tries)) as threads:
        return list(threads.map(run, tries))


class RacesSuite(StoreContract):
    def test_one_release_gets_a_number(self, store: Store) -> None:
        tries = [(AddRelease(release(2, variant(f"v{n}")), NOW, 50),) for n in range(8)]
        assert sorted(map(str, race(store, tries))) == ["None", *["stale"] * 7]
        assert sorted(store.read(Images())[0].releases) == [1, 2]

    def test_one_release_has_the_content(self, store: Store) -> None:
        tries = [(AddRelease(release(2, variant("same")), NOW, 50),) for _ in range(8)]
        assert sorted(map(str, race(store, tries))) == ["None", *["taken"] * 7]

    def test_one_image_gets_a_name_and_as_many_as_there_is_room_for(self, store: Store) -> None:
        assert sorted(map(str, race(store, [(AddImage(image("cad"), 9),)] * 6))) == ["None", *["taken"] * 5]
        tries = [(AddImage(image(f"n{n}"), 5),) for n in range(10)]
        assert sorted(map(str, race(store, tries))) == [*["None"] * 3, *["limit"] * 7]

    def test_as_many_reserve_as_there_are_slots(self, store: Store) -> None:
        store.apply(*(admitted(n) for n in range(16)))
        outcomes = race(store, [(reserved(n, slots=5),) for n in range(16)])
        assert outcomes.count(None) == 5
        assert outcomes.count(ConflictKind.FULL) == 11
        assert len(store.read(OpenAllocations(NODE))) == 5

    def test_a_session_is_placed_once(self, store: Store) -> None:
        store.apply(admitted())
        outcomes = race(store, [(reserved(again=f"-{n}", slots=100),) for n in range(10)])
        assert sorted(map(str, outcomes)) == ["None", *["taken"] * 9]
        assert len(store.read(OpenAllocations(NODE))) == 1

    def test_an_idempotency_key_makes_one_session(self, store: Store) -> None:
        tries = [(AdmitSession(session(n), frozen(), "key", "body"), reserved(n, slots=100)) for n in range(20)]
        outcomes = race(store, tries)
        assert sorted(map(str, outcomes)) == ["None", *["taken"] * 19]
        [made] = store.read(Sessions())
        created = store.read(CreatedWith(PROJECT, "key"))
        assert created is not None
        assert created.session == made.session.id == f"ses_{outcomes.index(None)}"
        assert [it.session.id for it in store.read(OpenAllocations(NODE))] == [made.session.id]

    def test_a_channel_moves_once_from_a_revision(self, store: Store) -> None:
        store.apply(*published(release(2), "canary"))
        tries = [(MoveChannel(WEB, "stable", 2, 1, NOW, f"p{n}", ""),) for n in range(8)]
        assert sorted(map(str, race(store, tries))) == ["None", *["stale"] * 7]
        assert store.read(Images())[0].channels["stable"].revision == 2

    def test_a_query_sees_one_moment(self, store: Store) -> None:
        """The answer takes several statements, between which the writer goes on."""
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(2, 50):
                    store.apply(*published(release(number)))
            finally:
                done.set()

        with ThreadPoolExecutor(4) as threads:
            readers = [threads.submit(_reads, store, done.is_set) for _ in range(3)]
            threads.submit(write).result()
            assert sum(reader.result() for reader in readers) > 3


def _reads(store: Store, stopped: Callable[[], bool]) -> int:
    reads = 0
    while not stopped():
        [entry] = store.read(Images())
        assert entry.channels["stable"].number == max(entry.releases)
        assert all(len(it.release.variants) == 1 for it in entry.releases.values())
        reads += 1
    return reads
