"""The suspended state of Sessions: one at a time, what it holds on to, and when it may go."""

from dataclasses import replace

import pytest

from sandbay.domain.allocation import AllocationState
from sandbay.domain.ids import AllocationId, FrozenId, NodeId, SessionId, SnapshotId
from sandbay.domain.session import SessionState
from sandbay.domain.suspension import Suspension, SuspensionState
from sandbay.domain.want import Need, Why
from sandbay.ports.changes import ConflictKind, MoveAllocation, MoveSession, Unpin
from sandbay.ports.snapshots import (
    AddSnapshot,
    DropSnapshot,
    HoldSnapshot,
    LetGoSnapshots,
    SnapshotOf,
    SnapshotsToDrop,
)
from sandbay.ports.store import Needs, SessionOf, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_races_suite import race
from tests.contracts.store_things import FAULT, NODE, NOW, admitted, frozen, refuses, reserved, session

ONE, SNAPSHOT, ALLOCATION = SessionId("ses_1"), SnapshotId("snp_1"), AllocationId("alo_1")
STARTING, RUNNING, SUSPENDING = (
    frozenset({s}) for s in (SessionState.STARTING, SessionState.RUNNING, SessionState.SUSPENDING)
)
OPEN = frozenset(AllocationState) - {AllocationState.CLOSED}


def taking(name: str = "1", **more: object) -> Suspension:
    of = session(1)
    it = Suspension(SnapshotId(f"snp_{name}"), of.id, NODE, of.frozen, of.frozen_digest, NOW)
    return replace(it, **more)  # type: ignore[arg-type] # as the caller says


def closed() -> MoveAllocation:
    return MoveAllocation(ALLOCATION, OPEN, AllocationState.CLOSED, NOW)


class SnapshotsSuite(StoreContract):
    def test_it_is_taken_held_let_go_and_forgotten(self, store: Store) -> None:
        store.apply(admitted(), reserved(), AddSnapshot(taking()))
        assert store.read(SnapshotOf(ONE)) == taking()
        store.apply(HoldSnapshot(SNAPSHOT, 2**40))
        assert store.read(SnapshotOf(ONE)) == taking(state=SuspensionState.HELD, bytes=2**40)
        refuses(store, HoldSnapshot(SNAPSHOT, 1), ConflictKind.STALE, SuspensionState.HELD)
        refuses(store, DropSnapshot(SNAPSHOT), ConflictKind.STALE, SuspensionState.HELD)
        store.apply(closed(), LetGoSnapshots(ONE))
        assert store.read(SnapshotOf(ONE)) is None
        assert store.read(SnapshotsToDrop(NODE)) == (SNAPSHOT,)
        assert store.read(SnapshotsToDrop(NodeId("node_z"))) == ()
        store.apply(DropSnapshot(SNAPSHOT))
        assert store.read(SnapshotsToDrop(NODE)) == ()
        refuses(store, DropSnapshot(SNAPSHOT), ConflictKind.STALE, SuspensionState.DROPPED)
        refuses(store, HoldSnapshot(SnapshotId("snp_0"), 1), ConflictKind.MISSING, None)

    def test_a_session_has_one_at_a_time(self, store: Store) -> None:
        store.apply(admitted(), reserved(), AddSnapshot(taking()))
        refuses(store, AddSnapshot(taking("2")), ConflictKind.TAKEN, SNAPSHOT)
        store.apply(LetGoSnapshots(ONE), LetGoSnapshots(ONE), AddSnapshot(taking("2")))
        kept = store.read(SnapshotOf(ONE))
        assert kept is not None
        assert kept.id == "snp_2"

    def test_one_of_many_begins_to_suspend(self, store: Store) -> None:
        store.apply(admitted(), reserved(), MoveSession(ONE, STARTING, SessionState.RUNNING, NOW))
        tries = [
            (MoveSession(ONE, RUNNING, SessionState.SUSPENDING, NOW), AddSnapshot(taking(str(n)))) for n in range(8)
        ]
        assert sorted(map(str, race(store, tries))) == ["None", *["stale"] * 7]
        assert store.read(SnapshotOf(ONE)) is not None

    def test_whoever_is_first_of_suspend_and_delete_leaves_one_outcome(self, store: Store) -> None:
        store.apply(admitted(), reserved(), MoveSession(ONE, STARTING, SessionState.RUNNING, NOW))
        suspend = (MoveSession(ONE, RUNNING, SessionState.SUSPENDING, NOW), AddSnapshot(taking()))
        end = (MoveSession(ONE, RUNNING, SessionState.ENDING, NOW), LetGoSnapshots(ONE))
        outcomes = race(store, [suspend, end, suspend, end])
        assert sorted(map(str, outcomes)) == ["None", *["stale"] * 3]
        record = store.read(SessionOf(ONE))
        assert record is not None
        kept = store.read(SnapshotOf(ONE))
        assert (record.session.state is SessionState.SUSPENDING) is (kept is not None)

    def test_it_keeps_its_release_on_its_node_until_it_is_let_go(self, store: Store) -> None:
        key = frozen().content_key
        need = Need(key, Why.SESSION, NODE)
        store.apply(admitted(), reserved(), AddSnapshot(taking()), closed())
        assert need in store.read(Needs())
        refuses(store, Unpin(NODE, key), ConflictKind.IN_USE, ONE)
        store.apply(LetGoSnapshots(ONE))
        assert need not in store.read(Needs())
        store.apply(Unpin(NODE, key))

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_it_goes_when_nothing_can_start_from_it_any_more(self, store: Store, state: AllocationState) -> None:
        """A sandbox that runs has what it needs; one that is being moved may be looking at it."""
        store.apply(admitted(), reserved(), AddSnapshot(taking()), LetGoSnapshots(ONE))
        store.apply(MoveAllocation(ALLOCATION, OPEN, state, NOW))
        gone = (SNAPSHOT,) if state is AllocationState.RUNNING else ()
        assert store.read(SnapshotsToDrop(NODE)) == gone
        store.apply(closed())
        assert store.read(SnapshotsToDrop(NODE)) == (SNAPSHOT,)

    @pytest.mark.parametrize("other", [{"frozen": FrozenId("frz_2")}, {"frozen_digest": "sha256:" + "0" * 64}])
    def test_it_is_of_the_release_of_its_session_and_of_no_other(self, store: Store, other: dict[str, str]) -> None:
        store.apply(admitted(), admitted(2), reserved())
        refuses(store, AddSnapshot(taking(**other)), ConflictKind.MISSING, None)
        assert store.read(SnapshotOf(ONE)) is None

    def test_what_went_wrong_with_a_resume_is_told_until_it_runs(self, store: Store) -> None:
        store.apply(admitted(), MoveSession(ONE, STARTING, SessionState.RUNNING, NOW))
        store.apply(MoveSession(ONE, RUNNING, SessionState.SUSPENDING, NOW))
        store.apply(MoveSession(ONE, SUSPENDING, SessionState.SUSPENDED, NOW, FAULT))
        record = store.read(SessionOf(ONE))
        assert record is not None
        assert record.session.fault == FAULT
        store.apply(MoveSession(ONE, frozenset({SessionState.SUSPENDED}), SessionState.RESUMING, NOW))
        record = store.read(SessionOf(ONE))
        assert record is not None
        assert record.session.fault is None
