"""Admission, reservation, and the moves of Sessions and allocations."""

from dataclasses import replace

import pytest

from sandbay.domain.allocation import AllocationState
from sandbay.domain.events import SessionEvent
from sandbay.domain.ids import AllocationId, FrozenId, NodeId, ProjectId, SessionId
from sandbay.domain.life import EndCause, Foretold, Life
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.session import Session, SessionState, WaitingFor
from sandbay.ports.changes import (
    AddProject,
    AdmitSession,
    ConflictKind,
    MoveAllocation,
    MoveSession,
    PutNode,
    PutReadiness,
    SetDeployment,
    Unpin,
)
from sandbay.ports.lives import Foretell, UseSession
from sandbay.ports.records import Created, Page, SessionRecord
from sandbay.ports.store import CreatedWith, OpenAllocations, SessionEvents, SessionOf, Sessions, Store
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    FAULT,
    NODE,
    NOW,
    PROJECT,
    admitted,
    deployment,
    everything,
    frozen,
    held,
    later,
    node,
    project,
    published,
    ready,
    refuses,
    release,
    reserved,
    session,
    variant,
)

STALE, TAKEN, MISSING = ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.MISSING
STARTING, RUNNING, ENDING = (frozenset({s}) for s in (SessionState.STARTING, SessionState.RUNNING, SessionState.ENDING))
OPEN = frozenset(AllocationState) - {AllocationState.CLOSED}


LIFE = Life(idle=600, longest=3600)


def _session(store: Store) -> Session:
    record = store.read(SessionOf(SessionId("ses_1")))
    assert record is not None
    return record.session


def closed(number: int, again: str = "") -> MoveAllocation:
    return MoveAllocation(AllocationId(f"alo_{number}{again}"), OPEN, AllocationState.CLOSED, NOW)


class SessionsSuite(StoreContract):
    def test_a_session_is_read_back_with_its_frozen_release(self, store: Store) -> None:
        waiting = session(2, state=SessionState.WAITING, waiting_for=WaitingFor.IMAGE, wait_until=later(60))
        store.apply(admitted(), AdmitSession(waiting, frozen()))
        assert store.read(SessionOf(SessionId("ses_1"))) == SessionRecord(session(), frozen())
        assert store.read(SessionOf(SessionId("ses_2"))) == SessionRecord(waiting, frozen())
        assert store.read(SessionOf(SessionId("ses_none"))) is None

    def test_the_frozen_document_is_what_was_written(self, store: Store) -> None:
        store.apply(admitted())
        record = store.read(SessionOf(SessionId("ses_1")))
        assert record is not None
        assert record.frozen.document == frozen().document
        assert record.frozen.document_digest == record.session.frozen_digest

    def test_another_projects_session_is_as_none(self, store: Store) -> None:
        store.apply(admitted(), AddProject(project("other")))
        assert store.read(SessionOf(SessionId("ses_1"), PROJECT)) is not None
        assert store.read(SessionOf(SessionId("ses_1"), ProjectId("prj_other"))) is None

    def test_sessions_are_newest_first_by_project_state_and_page(self, store: Store) -> None:
        other = ProjectId("prj_other")
        store.apply(AddProject(project("other")), *(admitted(n) for n in range(4)), admitted(9, project=other))
        store.apply(MoveSession(SessionId("ses_1"), STARTING, SessionState.RUNNING, NOW))

        def ids(query: Sessions) -> list[str]:
            return [it.session.id for it in store.read(query)]

        assert ids(Sessions()) == ["ses_9", "ses_3", "ses_2", "ses_1", "ses_0"]
        assert ids(Sessions(other)) == ["ses_9"]
        assert ids(Sessions(PROJECT, page=Page(limit=2))) == ["ses_3", "ses_2"]
        assert ids(Sessions(PROJECT, page=Page("ses_2", 2))) == ["ses_1", "ses_0"]
        assert ids(Sessions(states=RUNNING)) == ["ses_1"]
        assert ids(Sessions(states=RUNNING | STARTING, page=Page("ses_2"))) == ["ses_1", "ses_0"]
        assert ids(Sessions(states=frozenset())) == []
        assert ids(Sessions(page=Page("ses_none"))) == []

    def test_an_idempotency_key_is_used_once_by_a_project(self, store: Store) -> None:
        first = AdmitSession(session(), frozen(), "key", "sha256:body")
        store.apply(first, AddProject(project("other")))
        assert store.read(CreatedWith(PROJECT, "key")) == Created("sha256:body", SessionId("ses_1"))
        assert store.read(CreatedWith(PROJECT, "other")) is None
        assert store.read(CreatedWith(ProjectId("prj_other"), "key")) is None
        refuses(store, first, TAKEN, "ses_1")
        refuses(store, AdmitSession(session(2), frozen(), "key", "sha256:else"), TAKEN, "ses_1")
        store.apply(AdmitSession(session(3, project=ProjectId("prj_other")), frozen(), "key", "sha256:body"))

    def test_a_refused_admission_uses_no_key_up(self, store: Store) -> None:
        refused = AdmitSession(session(), frozen(generation=2), "key", "sha256:body")
        refused = replace(refused, session=session(it=refused.frozen))
        refuses(store, refused, STALE, 1)
        assert store.read(CreatedWith(PROJECT, "key")) is None

    def test_admission_is_by_the_current_generation(self, store: Store) -> None:
        store.apply(SetDeployment(deployment(2), 1))
        refuses(store, admitted(), STALE, 2)
        store.apply(admitted(1, frozen(generation=2)))

    def test_ids_of_sessions_and_frozen_releases_are_used_once(self, store: Store) -> None:
        store.apply(admitted())
        refuses(store, admitted(), TAKEN)
        refuses(store, admitted(2, frozen=FrozenId("frz_1")), TAKEN)
        refuses(store, admitted(2, id=SessionId("ses_1")), TAKEN)
        refuses(store, admitted(2, project=ProjectId("prj_none")), MISSING)

    def test_a_session_names_the_frozen_release_that_it_is_admitted_on(self, store: Store) -> None:
        before = everything(store)
        with pytest.raises(ValueError, match="ses_1"):
            store.apply(AdmitSession(session(frozen_digest="sha256:other"), frozen()))
        assert everything(store) == before

    def test_a_reservation_is_read_back_and_counted(self, store: Store) -> None:
        store.apply(admitted(), reserved(), admitted(2))
        allocation = reserved().allocation
        record = SessionRecord(session(), frozen(), allocation)
        assert store.read(SessionOf(SessionId("ses_1"))) == record
        assert store.read(OpenAllocations(NODE)) == (record,)
        assert store.read(OpenAllocations(NodeId("node_none"))) == ()

    def test_a_node_has_so_many_slots(self, store: Store) -> None:
        store.apply(*(admitted(n) for n in range(4)), reserved(0, slots=2), reserved(1, slots=2))
        refuses(store, reserved(2, slots=2), ConflictKind.FULL, 2)
        refuses(store, reserved(2, slots=0), ConflictKind.FULL, 2)
        store.apply(closed(0), reserved(2, slots=2))

    def test_a_session_has_one_open_allocation(self, store: Store) -> None:
        store.apply(admitted(), reserved())
        refuses(store, reserved(), TAKEN, "alo_1")
        for state in (AllocationState.STARTING, AllocationState.RUNNING, AllocationState.STOPPING):
            store.apply(MoveAllocation(AllocationId("alo_1"), OPEN, state, NOW))
            refuses(store, reserved(again="b"), TAKEN, "alo_1")
        store.apply(closed(1), reserved(again="b"))
        record = store.read(SessionOf(SessionId("ses_1")))
        assert record is not None
        assert record.allocation is not None
        assert record.allocation.id == "alo_1b"
        back = MoveAllocation(AllocationId("alo_1"), frozenset(AllocationState), AllocationState.RUNNING, NOW)
        refuses(store, back, TAKEN)

    def test_the_newest_allocation_counts(self, store: Store) -> None:
        store.apply(admitted(), reserved(again="z"), closed(1, "z"), reserved(again="a"), closed(1, "a"))
        record = store.read(SessionOf(SessionId("ses_1")))
        assert record is not None
        assert record.allocation is not None
        assert (record.allocation.id, record.allocation.state) == ("alo_1a", AllocationState.CLOSED)
        assert store.read(OpenAllocations(NODE)) == ()

    @pytest.mark.parametrize("state", sorted(set(ReadinessState) - {ReadinessState.READY}))
    def test_a_node_that_is_not_ready_is_no_place(self, store: Store, state: ReadinessState) -> None:
        store.apply(admitted(), PutReadiness(NODE, 1, frozen().content_key, Readiness(state, attempt=1), None))
        refuses(store, reserved(), STALE, state)

    def test_a_node_that_never_said_so_is_no_place(self, store: Store) -> None:
        store.apply(*published(release(2)), admitted(1, frozen(release(2))), PutNode(node("b")), admitted(2))
        refuses(store, reserved(1, frozen(release(2))), STALE, ReadinessState.ABSENT)
        refuses(store, reserved(2, on=NodeId("node_b")), STALE, ReadinessState.ABSENT)
        refuses(store, reserved(2, on=NodeId("node_none")), STALE, ReadinessState.ABSENT)

    def test_what_may_be_dropped_is_no_place(self, store: Store) -> None:
        store.apply(admitted(), admitted(2, frozen()), Unpin(NODE, frozen().content_key))
        refuses(store, reserved(), STALE, ReadinessState.EVICTING)

    def test_a_reservation_is_for_the_very_content_that_was_frozen(self, store: Store) -> None:
        store.apply(*published(release(2)), held(variant("web2")), admitted())
        before = everything(store)
        with pytest.raises(ValueError, match="alo_1"):
            store.apply(replace(reserved(), key=variant("web2").content_key))
        assert everything(store) == before

    def test_an_allocation_carries_its_sessions_frozen_release(self, store: Store) -> None:
        """Both pairs are real; only one of them is the Session's."""
        other = frozen(release(2))
        store.apply(*published(release(2)), held(variant("web2")), admitted(), admitted(2, other))
        mixed = replace(
            reserved(2, other), allocation=replace(reserved(2, other).allocation, session=SessionId("ses_1"))
        )
        refuses(store, mixed, MISSING)
        made_up = replace(reserved().allocation, frozen_digest="sha256:made-up")
        refuses(store, replace(reserved(), allocation=made_up), MISSING)
        refuses(store, reserved(7), MISSING)

    def test_each_state_that_a_session_comes_to_is_kept(self, store: Store) -> None:
        it, other = SessionId("ses_2"), SessionId("ses_1")
        waiting = session(2, state=SessionState.WAITING, waiting_for=WaitingFor.CAPACITY, wait_until=later(60))
        begin = MoveSession(it, frozenset({SessionState.WAITING}), SessionState.STARTING, later(1))
        store.apply(admitted(), AdmitSession(waiting, frozen()), begin)
        store.apply(MoveSession(it, STARTING, SessionState.FAILED, later(9), FAULT))
        refuses(store, begin, STALE, SessionState.FAILED)
        events = (
            SessionEvent(it, 1, waiting.created_at, SessionState.WAITING, WaitingFor.CAPACITY),
            SessionEvent(it, 2, later(1), SessionState.STARTING),
            SessionEvent(it, 3, later(9), SessionState.FAILED, fault=FAULT),
        )
        assert store.read(SessionEvents(it)) == events
        assert store.read(SessionEvents(it, 2)) == events[2:]
        assert store.read(SessionEvents(it, 3)) == ()
        assert [event.state for event in store.read(SessionEvents(other))] == [SessionState.STARTING]

    def test_a_session_moves_from_where_it_was_seen(self, store: Store) -> None:
        waiting = session(state=SessionState.WAITING, waiting_for=WaitingFor.CAPACITY, wait_until=later(60))
        store.apply(AdmitSession(waiting, frozen()))
        id_ = SessionId("ses_1")
        move = MoveSession(id_, frozenset({SessionState.WAITING}), SessionState.STARTING, later(1))
        refuses(store, replace(move, before=STARTING), STALE, SessionState.WAITING)
        refuses(store, replace(move, session=SessionId("ses_none")), MISSING)
        store.apply(move)
        refuses(store, move, STALE, SessionState.STARTING)
        moved = replace(
            waiting, state=SessionState.STARTING, waiting_for=None, wait_until=None, revision=2, moved_at=later(1)
        )
        assert store.read(SessionOf(id_)) == SessionRecord(moved, frozen())

    @pytest.mark.parametrize("final", [SessionState.ENDED, SessionState.FAILED])
    def test_a_final_state_has_a_time(self, store: Store, final: SessionState) -> None:
        fault = FAULT if final is SessionState.FAILED else None
        store.apply(admitted(), MoveSession(SessionId("ses_1"), STARTING, final, later(9), fault))
        ended = session(state=final, ended_at=later(9), fault=fault, revision=2, moved_at=later(9))
        assert store.read(SessionOf(SessionId("ses_1"))) == SessionRecord(ended, frozen())

    def test_an_end_is_foretold_once_and_taken_back_by_every_move(self, store: Store) -> None:
        store.apply(AdmitSession(session(life=LIFE), frozen()))
        id_, end = SessionId("ses_1"), Foretold(later(60), EndCause.IDLE)
        told = Foretell(id_, 1, end, later(1))
        refuses(store, replace(told, revision=2), STALE, 1)
        refuses(store, replace(told, session=SessionId("ses_none")), MISSING)
        store.apply(told)
        refuses(store, told, STALE, 2)
        assert _session(store) == session(life=LIFE, foretold=end, revision=2)
        store.apply(Foretell(id_, 2, None, later(2)), Foretell(id_, 3, end, later(3)))
        store.apply(MoveSession(id_, STARTING, SessionState.ENDING, later(4), because=EndCause.IDLE))
        store.apply(MoveSession(id_, ENDING, SessionState.ENDED, later(5)))
        events = store.read(SessionEvents(id_))
        assert [(it.number, it.at, it.foretold, it.ended_because) for it in events[1:]] == [
            (2, later(1), end, None),
            (3, later(2), None, None),
            (4, later(3), end, None),
            (5, later(4), None, EndCause.IDLE),
            (6, later(5), None, EndCause.IDLE),
        ]
        assert _session(store).ended_because is EndCause.IDLE

    def test_the_latest_use_stays_and_is_no_event(self, store: Store) -> None:
        store.apply(admitted(), UseSession(SessionId("ses_1"), later(5)))
        store.apply(UseSession(SessionId("ses_1"), later(3)), UseSession(SessionId("ses_none"), later(3)))
        assert _session(store) == session(used_at=later(5))
        store.apply(UseSession(SessionId("ses_1"), later(7)))
        assert _session(store) == session(used_at=later(7))
        assert len(store.read(SessionEvents(SessionId("ses_1")))) == 1

    def test_an_allocation_moves_from_where_it_was_seen_and_keeps_its_fault(self, store: Store) -> None:
        store.apply(admitted(), reserved())
        id_ = AllocationId("alo_1")
        stop = MoveAllocation(id_, OPEN, AllocationState.STOPPING, NOW, FAULT)
        store.apply(stop, closed(1))
        record = store.read(SessionOf(SessionId("ses_1")))
        assert record is not None
        assert record.allocation == replace(reserved().allocation, state=AllocationState.CLOSED, fault=FAULT)
        refuses(store, stop, STALE, AllocationState.CLOSED)
        refuses(store, closed(2), MISSING)

    def test_moving_catalog_and_deployment_alters_no_session(self, store: Store) -> None:
        store.apply(admitted(), reserved())
        before = store.read(SessionOf(SessionId("ses_1")))
        store.apply(*published(release(2)), SetDeployment(deployment(2, default=None), 1))
        store.apply(PutReadiness(NODE, 1, frozen().content_key, replace(ready(), attempt=2), None))
        assert store.read(SessionOf(SessionId("ses_1"))) == before
