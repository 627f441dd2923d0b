"""What each node should hold: required ones everywhere they can run, wishes where they were made, nothing else."""

from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.deployment import Pool, PoolAdmission
from sandbay.domain.ids import NodeId
from sandbay.domain.node import Node
from sandbay.domain.release import ContentKey
from sandbay.domain.want import Need, WantedSet, Why
from sandbay.flow.want import Runs, want
from tests.flow.worlds import AMD, ARM, sha

A, B, C = (ContentKey(sha(n)) for n in (1, 2, 3))
MAIN, ELSEWHERE, ZONE = (
    Pool("main", "p", AMD),
    Pool("arm", "p", ARM),
    Pool("zone", "q", AMD, node_selector={"zone": "a"}),
)
POOLS = (MAIN, ELSEWHERE, ZONE)


def node(name: str, provider: str = "p", zone: str | None = None, *, arm: bool = False) -> Node:
    labels = {} if zone is None else {"zone": zone}
    return Node(NodeId(name), name, provider, "r", ARM if arm else AMD, 4, labels)


NODES = (
    node("p1"),
    node("p2", zone="b"),
    node("arm", arm=True),
    node("q_a", "q", "a"),
    node("q_b", "q", "b"),
    node("z", "z"),
)
# Key → where it can run at all, and on which nodes that is.
RUNS: Runs = {A: (AMD, ("p",)), B: (AMD, ("z", "q", "p")), C: (ARM, ("q", "p"))}
WHERE = {A: {"p1", "p2"}, B: {"p1", "p2", "q_a"}, C: {"arm"}}


def holders(
    *needs: Need, pools: tuple[Pool, ...] = POOLS, runs: Runs = RUNS
) -> dict[str, tuple[tuple[ContentKey, Why], ...]]:
    wants = want(pools, NODES, needs, runs)
    assert set(wants.by_node) == {n.id for n in NODES}
    return {n.name: items for n in NODES if (items := wants.of(n.id).items)}


@pytest.mark.parametrize("key", RUNS)
def test_what_is_required_reaches_every_node_that_can_run_it(key: ContentKey) -> None:
    assert holders(Need(key, Why.REQUIRED)) == dict.fromkeys(WHERE[key], ((key, Why.REQUIRED),))


@pytest.mark.parametrize("why", [Why.SESSION, Why.WISH])
@pytest.mark.parametrize("key", RUNS)
def test_a_session_or_a_wish_wants_it_on_its_node_alone(key: ContentKey, why: Why) -> None:
    for n in NODES:
        expected = {n.name: ((key, why),)} if n.name in WHERE[key] else {}
        assert holders(Need(key, why, n.id)) == expected


def test_what_nobody_can_run_is_wanted_nowhere() -> None:
    unknown = ContentKey(sha(9))
    nobody: Runs = {A: (AMD, ("z",)), B: (AMD, ()), C: (ARM, ("q",))}
    every = [
        Need(key, why, at) for key in (A, B, C, unknown) for why in Why for at in (None, NodeId("p1"), NodeId("z"))
    ]
    assert holders(*every, runs=nobody) == {}
    assert holders(*every, pools=()) == {}
    assert holders(Need(unknown, Why.REQUIRED)) == {}
    assert holders(Need(A, Why.WISH, NodeId("gone"))) == {}


def test_a_paused_pool_keeps_what_it_holds_ready() -> None:
    paused = Pool("main", "p", AMD, admission=PoolAdmission.PAUSED)
    assert set(holders(Need(A, Why.REQUIRED), pools=(paused,))) == WHERE[A]


@pytest.mark.parametrize("order", list(permutations(Why)))
def test_the_strongest_reason_counts_in_whatever_order(order: tuple[Why, ...]) -> None:
    at = NodeId("p1")
    for n in (1, 2, 3):
        needs = [Need(A, why, None if why is Why.REQUIRED else at) for why in order[:n]]
        assert holders(*needs)["p1"] == ((A, min(order[:n])),)


def test_the_strongest_reason_comes_first_and_equal_ones_in_a_fixed_order() -> None:
    p1 = NodeId("p1")
    runs: Runs = {ContentKey(sha(n)): (AMD, ("p",)) for n in range(1, 7)}
    keys = sorted(runs)
    needs = [
        Need(keys[0], Why.WISH, p1),
        Need(keys[1], Why.SESSION, p1),
        Need(keys[5], Why.REQUIRED),
        Need(keys[3], Why.WISH, p1),
        Need(keys[2], Why.REQUIRED),
        Need(keys[4], Why.SESSION, p1),
    ]
    for turned in (needs, needs[::-1]):
        assert [(keys.index(key), why) for key, why in holders(*turned, runs=runs)["p1"]] == [
            (2, Why.REQUIRED),
            (5, Why.REQUIRED),
            (1, Why.SESSION),
            (4, Why.SESSION),
            (0, Why.WISH),
            (3, Why.WISH),
        ]


def test_a_stranger_wants_nothing() -> None:
    assert want(POOLS, NODES, (Need(A, Why.REQUIRED),), RUNS).of(NodeId("stranger")) == WantedSet()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 8))
def test_each_reason_is_there_or_could_not_run(seed: int, count: int) -> None:
    dice = Random(seed)  # noqa: S311
    needs = [
        Need(dice.choice([A, B, C]), dice.choice(list(Why)), dice.choice([None, *(n.id for n in NODES)]))
        for _ in range(count)
    ]
    expected = {
        (n.name, key): min(whys)
        for n, key in product(NODES, RUNS)
        if (whys := [need.why for need in needs if need.key == key and need.node in (None, n.id)])
        and n.name in WHERE[key]
    }
    found = {(name, key): why for name, items in holders(*needs).items() for key, why in items}
    assert found == expected
    once = want(iter(POOLS), iter(NODES), iter(needs), RUNS)
    assert once == want(POOLS, NODES, needs, RUNS)
