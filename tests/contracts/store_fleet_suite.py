"""The deployment, nodes, readiness, pins, wishes, and why something is held."""

from dataclasses import replace

import pytest

from sandbay.domain.allocation import AllocationState
from sandbay.domain.deployment import Pool
from sandbay.domain.ids import AllocationId, ImageId, NodeId, SessionId
from sandbay.domain.node import ONLINE_FOR, NodeView
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.session import SessionState
from sandbay.domain.want import Need, Why
from sandbay.ports.changes import (
    AddWish,
    ConflictKind,
    DropWish,
    MoveAllocation,
    MoveSession,
    PutNode,
    PutReadiness,
    SeeNode,
    SetDeployment,
    Unpin,
)
from sandbay.ports.records import ReadinessRow
from sandbay.ports.store import Fleet, Needs, Nodes, ReadinessRows, Store, TheDeployment
from tests.contracts.store_base import StoreContract
from tests.contracts.store_things import (
    FAULT,
    NODE,
    NOW,
    WEB,
    admitted,
    content,
    deployment,
    everything,
    frozen,
    held,
    later,
    node,
    pool,
    published,
    ready,
    refuses,
    release,
    reserved,
    variant,
)

STALE, MISSING, IN_USE = ConflictKind.STALE, ConflictKind.MISSING, ConflictKind.IN_USE
KEY = content("web1")
OPEN = frozenset(AllocationState) - {AllocationState.CLOSED}


def put(readiness: Readiness, after: int | None, epoch: int = 1) -> PutReadiness:
    return PutReadiness(NODE, epoch, KEY, readiness, after)


class FleetSuite(StoreContract):
    def test_an_empty_database_answers(self, empty: Store) -> None:
        assert empty.read(TheDeployment()) is None
        assert empty.read(Nodes()) == ()
        assert empty.read(Needs()) == ()
        assert empty.read(Fleet(KEY, NOW)) == ()

    def test_the_newest_generation_is_the_deployment(self, store: Store) -> None:
        second = deployment(2, pool("z"), pool("main"), pool("a", "docker"), default=None)
        store.apply(SetDeployment(second, 1))
        assert store.read(TheDeployment()) == second

    def test_a_generation_follows_the_expected_one(self, store: Store) -> None:
        refuses(store, SetDeployment(deployment(1), 0), STALE, 1)
        refuses(store, SetDeployment(deployment(3), 2), STALE, 1)
        refuses(store, SetDeployment(deployment(2, default=ImageId("img_none")), 1), MISSING)
        before = everything(store)
        with pytest.raises(ValueError, match="generation 3"):
            store.apply(SetDeployment(deployment(3), 1))
        assert everything(store) == before

    @pytest.mark.parametrize("pools", [(pool("other"),), (pool("main", "docker"),)])
    def test_a_pool_with_sessions_stays(self, store: Store, pools: tuple[Pool, ...]) -> None:
        change = SetDeployment(replace(deployment(2), pools=pools), 1)
        store.apply(admitted(), reserved())
        refuses(store, change, IN_USE, ("main",))
        store.apply(MoveAllocation(AllocationId("alo_1"), OPEN, AllocationState.CLOSED, NOW))
        refuses(store, change, IN_USE, ("main",))
        store.apply(MoveSession(SessionId("ses_1"), frozenset(SessionState), SessionState.ENDED, NOW))
        store.apply(change)

    def test_a_pool_whose_sandbox_is_not_gone_yet_stays(self, store: Store) -> None:
        store.apply(admitted(), reserved())
        store.apply(MoveSession(SessionId("ses_1"), frozenset(SessionState), SessionState.FAILED, NOW, FAULT))
        refuses(store, SetDeployment(deployment(2, pool("other")), 1), IN_USE, ("main",))

    def test_other_changes_of_a_pool_with_sessions_are_fine(self, store: Store) -> None:
        store.apply(admitted(), reserved(), SetDeployment(deployment(2, pool("new"), pool("main")), 1))
        store.apply(SetDeployment(deployment(3, replace(pool("main"), node_selector={})), 2))

    def test_nodes_are_by_name_and_seen(self, store: Store) -> None:
        store.apply(PutNode(node("c")), PutNode(replace(node("b"), last_seen=None, warm=False)))
        store.apply(SeeNode(NodeId("node_c"), 1, later(5), warm=False))
        assert store.read(Nodes()) == (
            node("a"),
            replace(node("b"), last_seen=None, warm=False),
            replace(node("c"), last_seen=later(5), warm=False),
        )

    def test_every_hello_is_the_next_epoch(self, store: Store) -> None:
        again = replace(node(epoch=2), slots=9, labels={}, runtime="crun", warm=False)
        for stale in (0, 1, 3):
            refuses(store, PutNode(replace(again, epoch=stale)), STALE, 1)
        refuses(store, PutNode(node("new", epoch=2)), STALE, 0)
        store.apply(PutNode(again))
        assert store.read(Nodes()) == (again,)
        refuses(store, PutNode(again), STALE, 2)

    def test_an_old_epoch_changes_nothing(self, store: Store) -> None:
        store.apply(PutNode(node(epoch=2)))
        refuses(store, SeeNode(NODE, 1, later(5), warm=False), STALE, 2)
        refuses(store, put(Readiness(), None), STALE, 2)
        refuses(store, SeeNode(NodeId("node_none"), 1, NOW, warm=True), MISSING)
        refuses(store, PutReadiness(NodeId("node_none"), 1, KEY, Readiness(), None), MISSING)

    def test_the_fleet_is_seen_for_one_variant(self, store: Store) -> None:
        store.apply(PutNode(node("b")), admitted(), reserved(), admitted(2), reserved(2))
        store.apply(MoveAllocation(AllocationId("alo_2"), OPEN, AllocationState.CLOSED, NOW))
        a, b = node("a"), node("b")
        assert store.read(Fleet(KEY, NOW)) == (
            NodeView(a, online=True, active=1, readiness=ready()),
            NodeView(b, online=True, active=0, readiness=Readiness()),
        )
        assert store.read(Fleet(content("else"), NOW)) == (
            NodeView(a, online=True, active=1, readiness=Readiness()),
            NodeView(b, online=True, active=0, readiness=Readiness()),
        )
        assert [it.online for it in store.read(Fleet(KEY, NOW + ONLINE_FOR))] == [True, True]
        assert [it.online for it in store.read(Fleet(KEY, later(ONLINE_FOR.total_seconds() + 1)))] == [False, False]

    def test_a_cell_follows_its_attempt(self, store: Store) -> None:
        pulling = Readiness(ReadinessState.PULLING, wanted=True, attempt=2, bytes_done=5, bytes_total=9)
        failed = Readiness(ReadinessState.FAILED, attempt=3, fault=FAULT, retry_at=later(60))
        refuses(store, put(pulling, 0), STALE, 1)
        refuses(store, put(pulling, 2), STALE, 1)
        store.apply(put(pulling, 1))
        refuses(store, put(pulling, 1), STALE, 2)
        store.apply(put(pulling, 2), put(failed, None))
        assert store.read(ReadinessRows()) == (ReadinessRow(NODE, KEY, failed, pinned=True),)

    def test_a_cell_that_is_not_there_is_at_attempt_0(self, store: Store) -> None:
        queued = Readiness(ReadinessState.QUEUED, wanted=True, attempt=1)
        new = PutReadiness(NODE, 1, content("new"), queued, 1)
        refuses(store, new, STALE, 0)
        store.apply(replace(new, after_attempt=0))
        assert store.read(ReadinessRows(content("new"))) == (ReadinessRow(NODE, content("new"), queued, pinned=False),)

    def test_ready_pins_and_only_a_grant_ends_it(self, store: Store) -> None:
        store.apply(put(ready(), 1))
        for state in ReadinessState:
            store.apply(put(Readiness(state, attempt=1), 1))
            assert store.read(ReadinessRows(KEY))[0].pinned
        store.apply(put(ready(), None))
        for _ in range(2):
            store.apply(Unpin(NODE, KEY))
            row = store.read(ReadinessRows(KEY))[0]
            assert (row.pinned, row.readiness) == (False, replace(ready(), state=ReadinessState.EVICTING))
        store.apply(put(ready(2), 1))
        assert store.read(ReadinessRows(KEY))[0].pinned

    def test_the_grant_evicts_only_what_is_ready(self, store: Store) -> None:
        lost = Readiness(ReadinessState.FAILED, attempt=1, fault=FAULT)
        store.apply(put(lost, 1), Unpin(NODE, KEY))
        assert store.read(ReadinessRows(KEY)) == (ReadinessRow(NODE, KEY, lost, pinned=False),)

    def test_a_pin_stays_while_something_needs_it(self, store: Store) -> None:
        drop = Unpin(NODE, KEY)
        store.apply(admitted(), reserved())
        refuses(store, drop, IN_USE, "ses_1")
        store.apply(MoveAllocation(AllocationId("alo_1"), OPEN, AllocationState.CLOSED, NOW), AddWish(KEY, NODE, NOW))
        refuses(store, drop, IN_USE, "a wish")
        store.apply(DropWish(KEY, NODE), admitted(2, state=SessionState.WAITING))
        refuses(store, drop, IN_USE, "ses_2")
        store.apply(MoveSession(SessionId("ses_2"), frozenset(SessionState), SessionState.FAILED, NOW), drop)

    def test_needs_elsewhere_or_of_others_keep_no_pin(self, store: Store) -> None:
        b = NodeId("node_b")
        store.apply(PutNode(node("b")), held(variant("web1"), b), *published(release(2)), held(variant("web2")))
        other = frozen(release(2))
        store.apply(admitted(1), reserved(1, on=b), admitted(2, other), reserved(2, other), AddWish(KEY, b, NOW))
        store.apply(Unpin(NODE, KEY))

    def test_needs_are_the_default_open_allocations_and_wishes(self, store: Store) -> None:
        b = NodeId("node_b")
        other = frozen(release(2, variant("two")))
        store.apply(PutNode(node("b")), *published(release(2, variant("two")), "canary"), held(variant("two"), b))
        store.apply(admitted(1, other), reserved(1, other, on=b), admitted(2, other), reserved(2, other, on=b))
        store.apply(admitted(3, other, state=SessionState.WAITING), AddWish(content("two"), NODE, NOW))
        assert set(store.read(Needs())) == {
            Need(KEY, Why.REQUIRED, None),
            Need(content("two"), Why.SESSION, b),
            Need(content("two"), Why.WISH, NODE),
        }
        assert len(store.read(Needs())) == 3
        closing = (MoveAllocation(AllocationId(f"alo_{n}"), OPEN, AllocationState.CLOSED, NOW) for n in (1, 2))
        store.apply(*closing, DropWish(content("two"), NODE), *published(release(3, variant("three"))))
        assert store.read(Needs()) == (Need(content("three"), Why.REQUIRED, None),)
        store.apply(SetDeployment(deployment(2, default=None), 1))
        assert store.read(Needs()) == ()

    def test_wishes_come_and_go_as_often_as_told(self, store: Store) -> None:
        wished = Need(content("new"), Why.WISH, NODE)
        for _ in range(2):
            store.apply(AddWish(content("new"), NODE, NOW))
            assert wished in store.read(Needs())
        for _ in range(2):
            store.apply(DropWish(content("new"), NODE))
            assert wished not in store.read(Needs())
        refuses(store, AddWish(content("new"), NodeId("node_none"), NOW), MISSING)

    def test_of_two_wishes_the_stronger_stays(self, store: Store) -> None:
        ahead, demand = (AddWish(content("new"), NODE, NOW, why) for why in (Why.CACHED, Why.WISH))
        for wishes, why in (((ahead,), Why.CACHED), ((demand,), Why.WISH), ((ahead, ahead), Why.WISH)):
            store.apply(*wishes)
            assert [need for need in store.read(Needs()) if need.key == content("new")] == [
                Need(content("new"), why, NODE)
            ]
        refuses(store, Unpin(NODE, content("new")), IN_USE, "a wish")
        store.apply(DropWish(content("new"), NODE), ahead)
        assert Need(content("new"), Why.CACHED, NODE) in store.read(Needs())
        refuses(store, Unpin(NODE, content("new")), IN_USE, "a wish")

    def test_a_wish_stays_until_every_release_with_the_content_is_proved(self, store: Store) -> None:
        """A decision that was made before the newer release came drops nothing that this one waits for."""
        wished, drop = Need(content("new"), Why.WISH, NODE), DropWish(content("new"), NODE)
        add, activate, *_ = published(release(2, variant("new")), "canary")
        store.apply(add, AddWish(content("new"), NODE, NOW), drop)
        assert wished in store.read(Needs())
        store.apply(activate, drop)
        assert wished not in store.read(Needs())

    def test_the_default_image_is_required_by_its_stable_channel_alone(self, store: Store) -> None:
        store.apply(SetDeployment(deployment(2, default=None), 1), *published(release(2), "canary"))
        store.apply(SetDeployment(deployment(3, default=WEB), 2))
        assert store.read(Needs()) == (Need(KEY, Why.REQUIRED, None),)
