"""Placing: every single cell, what wins over what, exact counts, and what holds in any fleet."""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.deployment import Pool, PoolAdmission, SandboxSize
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ImageId, NodeId, ReleaseId, SessionId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.placement import FellOut, Placed, Unplaced
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import MANIFEST_DIGEST, Artifact, Fault, Known
from sandbay.domain.trail import DecidedBy, Level
from sandbay.flow.place import place
from tests.flow.worlds import AMD, ARM, NOW, sha, some_id

F, S = FellOut, ReadinessState
SESSION = SessionId(some_id("ses", 1))
LATER = NOW.replace(year=2027)
FROZEN = FrozenRelease(
    image=ImageId(some_id("img", 3)),
    image_name="web",
    reference="web",
    release=ReleaseId(some_id("rel", 7)),
    number=7,
    platform=AMD,
    artifacts={MANIFEST_DIGEST: Artifact(sha(1), Known.COMPUTED)},
    providers=("p", "q"),
    digest=sha(1),
    index_digest=None,
    source_commit=None,
    size=10,
    generation=1,
    decided_by=DecidedBy(Level.SESSION),
    trail=(),
)
SIZE = SandboxSize(2.0, 100, 10)
MAIN = Pool("main", "p", AMD, SIZE)


def failed(retry_at: datetime | None = None, reason: Reason = Reason.DIGEST_MISMATCH, done: int = 0) -> Readiness:
    return Readiness(S.FAILED, wanted=True, attempt=1, fault=Fault(reason, "no"), retry_at=retry_at, bytes_done=done)


READY = Readiness(S.READY, wanted=True, attempt=1, bytes_done=10, bytes_total=10)
READINESS = {
    **{state.value: Readiness(state, wanted=True, attempt=1) for state in S if state is not S.FAILED},
    "failed, tried again": failed(LATER),
    "failed for good": failed(),
}


def view(
    name: str,
    readiness: Readiness = READY,
    *,
    active: int = 0,
    pool: Pool = MAIN,
    online: bool = True,
    warm: bool = True,
    slots: int = 4,
) -> NodeView:
    node = Node(NodeId(f"node_{name}"), name, pool.provider, "r", pool.platform, slots, dict(pool.node_selector))
    return NodeView(replace(node, warm=warm), online, active, readiness)


def placed(fleet: list[NodeView], *pools: Pool, session: SessionId = SESSION) -> Placed:
    outcome = place(FROZEN, SIZE, pools or (MAIN,), fleet, session)
    assert isinstance(outcome, Placed)
    return outcome


def unplaced(fleet: list[NodeView], *pools: Pool) -> Unplaced:
    outcome = place(FROZEN, SIZE, iter(pools or (MAIN,)), iter(fleet), SESSION)
    assert isinstance(outcome, Unplaced)
    return outcome


FLAGS = ["kind fits", "platform fits", "large enough", "open", "online", "warm", "free"]
# Where the pool or the node falls out, in the order of the specification; the reason when it stands alone.
FALLS: dict[str, tuple[FellOut, Reason]] = {
    "kind fits": (F.PROVIDER, Reason.IMAGE_UNSUPPORTED),
    "platform fits": (F.PROVIDER, Reason.IMAGE_UNSUPPORTED),
    "large enough": (F.TOO_SMALL, Reason.RESOURCE_UNSUPPORTED),
    "open": (F.PAUSED, Reason.POOL_PAUSED),
    "online": (F.OFFLINE, Reason.NO_NODE_ONLINE),
    "warm": (F.WARMING, Reason.IMAGE_NOT_READY),
}
HELD: dict[str, tuple[FellOut, Reason]] = {
    "absent": (F.ABSENT, Reason.IMAGE_NOT_READY),
    "queued": (F.PREPARING, Reason.IMAGE_NOT_READY),
    "pulling": (F.PREPARING, Reason.IMAGE_NOT_READY),
    "verifying": (F.PREPARING, Reason.IMAGE_NOT_READY),
    "evicting": (F.ABSENT, Reason.IMAGE_NOT_READY),
    "failed, tried again": (F.FAILED, Reason.IMAGE_NOT_READY),
    "failed for good": (F.FAILED, Reason.IMAGE_PREPARE_FAILED),
}
OF_POOL = FLAGS[:4]


@pytest.mark.parametrize("held", READINESS)
def test_every_cell_of_one_node(held: str) -> None:
    assert {"ready", *HELD} == set(READINESS)
    for values in product([True, False], repeat=len(FLAGS)):
        yes = dict(zip(FLAGS, values, strict=True))
        pool = Pool(
            "main",
            "p" if yes["kind fits"] else "z",
            AMD if yes["platform fits"] else ARM,
            SIZE if yes["large enough"] else SandboxSize(2.0, 99, 10),
            PoolAdmission.OPEN if yes["open"] else PoolAdmission.PAUSED,
        )
        it = view(
            "a", READINESS[held], active=3 if yes["free"] else 4, pool=pool, online=yes["online"], warm=yes["warm"]
        )
        outcome = place(FROZEN, SIZE, [pool], [it], SESSION)

        first_no = next((flag for flag in FALLS if not yes[flag]), None)
        if first_no is None and held == "ready" and yes["free"]:
            assert outcome == Placed(it.node.id, "main", 4)
            continue
        if first_no is not None:
            why, reason = FALLS[first_no]
        else:
            why, reason = HELD.get(held, (F.FULL, Reason.NO_CAPACITY))
        if first_no == "warm" and held == "failed for good":
            reason = Reason.IMAGE_PREPARE_FAILED
        assert isinstance(outcome, Unplaced)
        assert outcome.reason is reason, yes
        assert outcome.counts == {"main": {why: 0 if first_no in OF_POOL else 1}}, yes
        waits = reason is Reason.IMAGE_NOT_READY
        assert outcome.able == ((it.node.id,) if waits else ()), yes


# Whole pools of one kind each, and what each alone is answered with.
SMALL = SandboxSize(1.0, 100, 10)
POOLS: dict[str, tuple[Pool, list[NodeView]]] = {}


def _kind(name: str, pool: Pool, *views: NodeView) -> None:
    pool = replace(pool, name=name, node_selector={"pool": name})
    POOLS[name] = (
        pool,
        [replace(v, node=replace(v.node, id=NodeId(f"node_{name}"), name=name, labels={"pool": name})) for v in views],
    )


_kind("full", MAIN, view("", active=4))
_kind("preparing", MAIN, view("", READINESS["pulling"]))
_kind("absent", MAIN, view("", Readiness()))
_kind("warming", MAIN, view("", warm=False))
_kind("failed_once", MAIN, view("", failed(LATER)))
_kind("failed_for_good", MAIN, view("", failed()))
_kind("offline", MAIN, view("", online=False))
_kind("no_nodes", MAIN)
_kind("paused", replace(MAIN, admission=PoolAdmission.PAUSED), view(""))
_kind("small", replace(MAIN, size=SMALL), view(""))
_kind("foreign", replace(MAIN, provider="z"), view("", pool=replace(MAIN, provider="z")))

# The strongest first. Two of them are one answer when they stand together.
PRECEDENCE: list[tuple[set[str], set[str], Reason]] = [
    ({"full"}, set(), Reason.NO_CAPACITY),
    ({"preparing", "absent", "warming", "failed_once"}, set(), Reason.IMAGE_NOT_READY),
    ({"failed_for_good"}, {"offline"}, Reason.IMAGE_NOT_READY),
    ({"failed_for_good"}, set(), Reason.IMAGE_PREPARE_FAILED),
    ({"offline", "no_nodes"}, set(), Reason.NO_NODE_ONLINE),
    ({"paused"}, set(), Reason.POOL_PAUSED),
    ({"small"}, set(), Reason.RESOURCE_UNSUPPORTED),
    ({"foreign"}, set(), Reason.IMAGE_UNSUPPORTED),
]
COUNTED = {
    "full": {F.FULL: 1},
    "preparing": {F.PREPARING: 1},
    "absent": {F.ABSENT: 1},
    "warming": {F.WARMING: 1},
    "failed_once": {F.FAILED: 1},
    "failed_for_good": {F.FAILED: 1},
    "offline": {F.OFFLINE: 1},
    "no_nodes": {F.NO_NODES: 0},
    "paused": {F.PAUSED: 0},
    "small": {F.TOO_SMALL: 0},
    "foreign": {F.PROVIDER: 0},
}
SOME = [kinds for n in (0, 1, 2, 3) for kinds in combinations(POOLS, n)]


def test_which_reason_wins() -> None:
    for kinds, turned in product(SOME, [False, True]):
        named = tuple(reversed(kinds)) if turned else kinds
        fleet = [v for kind in named for v in POOLS[kind][1]]
        outcome = unplaced(fleet, *(POOLS[kind][0] for kind in named)) if named else place_nowhere()
        expected = next(
            (reason for any_of, also, reason in PRECEDENCE if any_of & {*kinds} and also <= {*kinds}),
            Reason.IMAGE_UNSUPPORTED,
        )
        assert outcome.reason is expected, named
        assert outcome.counts == {kind: COUNTED[kind] for kind in named}
        assert list(outcome.counts) == list(named)
        able = {"preparing", "absent", "warming", "failed_once"}
        assert set(outcome.able) == {f"node_{kind}" for kind in able & {*kinds}}
        assert bool(outcome.facts) is (expected in (Reason.IMAGE_NOT_READY, Reason.IMAGE_PREPARE_FAILED))


def place_nowhere() -> Unplaced:
    outcome = place(FROZEN, SIZE, (), [view("a")], SESSION)
    assert isinstance(outcome, Unplaced)
    return outcome


@pytest.mark.parametrize("kind", [*POOLS, None])
def test_one_ready_node_is_enough_wherever_its_pool_stands(kind: str | None) -> None:
    pool = replace(MAIN, name="good", node_selector={"pool": "good"})
    ready = view("good", pool=pool, active=3)
    others, fleet = ([POOLS[kind][0]], POOLS[kind][1]) if kind else ([], [])
    for pools in ([pool, *others], [*others, pool]):
        assert placed([*fleet, ready], *pools) == Placed(ready.node.id, "good", 4)


def test_counts_are_exact() -> None:
    gpu = Pool("gpu", "z", AMD, SIZE)
    spare = replace(MAIN, name="spare", node_selector={"zone": "b"})
    mains = [
        *(view(f"f{n}", active=4 + n) for n in range(2)),
        *(view(f"p{n}", READINESS[state]) for n, state in enumerate(("queued", "pulling", "verifying"))),
        *(view(f"a{n}", READINESS[state]) for n, state in enumerate(("absent", "evicting"))),
        *(view(f"x{n}", it) for n, it in enumerate((failed(), failed(LATER)))),
        *(view(f"o{n}", online=False) for n in range(5)),
        view("w", warm=False),
        view("g", pool=gpu),
    ]
    outcome = unplaced([*mains, view("s", failed(), pool=spare)], gpu, MAIN, spare)
    assert outcome.counts == {
        "gpu": {F.PROVIDER: 0},
        # Nodes of `spare` carry one label more than `main` asks for, and belong to both.
        "main": {F.FULL: 2, F.PREPARING: 3, F.ABSENT: 2, F.FAILED: 3, F.OFFLINE: 5, F.WARMING: 1},
        "spare": {F.FAILED: 1},
    }
    assert outcome.reason is Reason.NO_CAPACITY
    assert len(outcome.able) == len(set(outcome.able)) == 3 + 2 + 1 + 1


@pytest.mark.parametrize("provider", ["p", "q"])
def test_any_provider_of_the_release_will_do(provider: str) -> None:
    pool = replace(MAIN, provider=provider)
    assert placed([view("a", pool=pool)], pool).node == "node_a"


@pytest.mark.parametrize(
    "resources, fits",
    [
        (SIZE, True),
        (SandboxSize(2.5, 100, 10), False),
        (SandboxSize(2.0, 101, 10), False),
        (SandboxSize(2.0, 100, 11), False),
    ],
)
def test_a_smaller_pool_is_skipped_for_a_larger_one(resources: SandboxSize, *, fits: bool) -> None:
    large = Pool("large", "q", AMD, SandboxSize(8.0, 800, 80))
    outcome = place(FROZEN, resources, (MAIN, large), [view("a"), view("b", pool=large)], SESSION)
    assert isinstance(outcome, Placed)
    assert outcome.pool == ("main" if fits else "large")


def test_pools_are_tried_in_their_order_and_the_fewest_active_win() -> None:
    first, second = MAIN, Pool("second", "q", AMD, SIZE)
    busy = [view(f"m{n}", active=n) for n in (3, 1, 2)]
    idle = view("s", pool=second)
    assert placed([idle, *busy], first, second) == Placed(NodeId("node_m1"), "main", 4)
    assert placed([idle, *busy], second, first) == Placed(NodeId("node_s"), "second", 4)
    assert placed([idle, *(replace(v, active=4) for v in busy)], first, second).node == "node_s"


def test_slots_told_are_those_of_the_node() -> None:
    assert placed([view("a", slots=9, active=8)]).slots == 9


def test_a_tie_is_broken_alike_by_everybody_and_spread_over_sessions() -> None:
    fleet = [view(name) for name in "abcd"]
    sessions = [SessionId(some_id("ses", n)) for n in range(400)]
    won = Counter(placed(fleet, session=session).node for session in sessions)
    assert len(won) == 4
    assert min(won.values()) > 50
    assert [placed(fleet[::-1], session=s) for s in sessions[:50]] == [placed(fleet, session=s) for s in sessions[:50]]
    # In every process and version: replicas side by side must decide alike.
    assert "".join(placed(fleet, session=s).node[-1] for s in sessions[:8]) == "bbaabbac"


def test_wishes_go_to_the_least_loaded_then_to_what_failed() -> None:
    fleet = [
        view("busy", Readiness(), active=3),
        view("failed", failed(LATER), active=0),
        view("idle", Readiness(), active=1),
        view("hopeless", failed(), active=0),
        view("cold", warm=False, active=2),
        view("away", Readiness(), active=0, online=False),
        view("full", active=4),
        view("loaded", Readiness(), active=9),
    ]
    assert unplaced(fleet).able == tuple(NodeId(f"node_{n}") for n in ("idle", "cold", "busy", "loaded", "failed"))


PERCENTS = [
    ([Readiness()], "absent", 0),
    ([Readiness(S.EVICTING, bytes_done=10, bytes_total=10)], "absent", 0),
    ([Readiness(S.QUEUED)], "preparing", 0),
    ([Readiness(S.PULLING, bytes_done=71, bytes_total=100), Readiness()], "preparing", 71),
    ([Readiness(S.PULLING, bytes_done=n, bytes_total=1000) for n in (9, 719, 300)], "preparing", 71),
    ([Readiness(S.VERIFYING, bytes_done=100, bytes_total=100)], "preparing", 100),
    ([Readiness(S.PULLING, bytes_done=1, bytes_total=100), failed(LATER)], "preparing", 1),
    ([replace(failed(LATER), bytes_done=9, bytes_total=10), Readiness()], "failed_some", 0),
    ([failed(), Readiness()], "failed_some", 0),
]


@pytest.mark.parametrize("held, state, percent", PERCENTS)
def test_how_near_it_is(held: list[Readiness], state: str, percent: int) -> None:
    outcome = unplaced([view(str(n), it) for n, it in enumerate(held)])
    assert outcome.reason is Reason.IMAGE_NOT_READY
    assert outcome.facts == {"state": state, "best_percent": percent}


def test_what_is_far_from_ready_is_told_of_eligible_nodes_only() -> None:
    pulling = Readiness(S.PULLING, bytes_done=9, bytes_total=10)
    paused = Pool("paused", "q", AMD, SIZE, PoolAdmission.PAUSED)
    fleet = [view("a", Readiness()), view("b", pulling, online=False), view("c", pulling, pool=paused)]
    assert unplaced(fleet, MAIN, paused).facts == {"state": "absent", "best_percent": 0}


def test_when_every_node_failed_for_good_each_says_why() -> None:
    fleet = [view("a", failed()), view("b", failed(reason=Reason.NO_SPACE))]
    outcome = unplaced(fleet)
    assert outcome.reason is Reason.IMAGE_PREPARE_FAILED
    assert outcome.facts == {"diagnostics": {"a": "digest_mismatch", "b": "no_space"}}
    assert outcome.able == ()
    for hope in (failed(LATER), Readiness(), READINESS["queued"]):
        assert unplaced([*fleet, view("c", hope)]).able == ("node_c",)


def test_a_node_that_is_not_heard_of_may_still_be_able() -> None:
    outcome = unplaced([view("a", failed()), view("b", failed(), online=False)])
    assert outcome.reason is Reason.IMAGE_NOT_READY
    assert outcome.facts["state"] == "failed_some"


# Any fleet.
LABELS = [{}, {"zone": "a"}, {"zone": "b"}]


def _pools(dice: Random) -> list[Pool]:
    return [
        Pool(
            f"pool-{n}",
            dice.choice("ppqz"),
            dice.choice([AMD, AMD, AMD, ARM]),
            dice.choice([SIZE, SMALL]),
            dice.choice([PoolAdmission.OPEN, PoolAdmission.OPEN, PoolAdmission.PAUSED]),
            dice.choice(LABELS),
        )
        for n in range(dice.randint(1, 4))
    ]


def _view(dice: Random, number: int) -> NodeView:
    platform = dice.choice([AMD, AMD, AMD, ARM])
    node = Node(NodeId(f"node_{number}"), f"n{number}", dice.choice("ppqz"), "r", platform, dice.randint(1, 3))
    node = replace(node, labels=dice.choice(LABELS), warm=dice.random() < 0.8)
    readiness = dice.choice([READY, READY, *READINESS.values()])
    return NodeView(node, dice.random() < 0.8, dice.randint(0, 3), readiness)


SEEDS, NODES = st.integers(0, 10**6), st.integers(0, 7)
ANY = settings(max_examples=60, deadline=None)


def _runs(pool: Pool, it: NodeView) -> bool:
    """Membership and fitness, told by fields."""
    node, labels = it.node, pool.node_selector
    return (
        (node.provider, node.platform) == (pool.provider, pool.platform)
        and all(node.labels.get(name) == value for name, value in labels.items())
        and pool.provider in {"p", "q"}
        and pool.platform == AMD
        and pool.size == SIZE
        and pool.admission is PoolAdmission.OPEN
    )


@ANY
@given(SEEDS, NODES)
def test_in_any_fleet(seed: int, nodes: int) -> None:
    dice = Random(seed)  # noqa: S311
    pools, fleet = _pools(dice), [_view(dice, n) for n in range(nodes)]
    outcome = place(FROZEN, SIZE, pools, fleet, SESSION)

    candidates = [
        (at, it.active, it.node.id)
        for (at, pool), it in product(enumerate(pools), fleet)
        if _runs(pool, it)
        and (it.online, it.node.warm, it.readiness.state) == (True, True, S.READY)
        and it.active < it.node.slots
    ]
    shuffled, again = list(fleet), [*fleet]
    dice.shuffle(shuffled)
    assert place(FROZEN, SIZE, iter(pools), iter(shuffled), SESSION) == outcome
    assert fleet == again
    if candidates:
        best = min(candidates)[:2]
        assert isinstance(outcome, Placed)
        assert (outcome.pool, outcome.node) in {(pools[at].name, node) for at, n, node in candidates if (at, n) == best}
        return
    assert isinstance(outcome, Unplaced)
    by_id = {it.node.id: it for it in fleet}
    assert list(outcome.counts) == [pool.name for pool in pools]
    assert len(set(outcome.able)) == len(outcome.able)
    for node in outcome.able:
        assert by_id[node].online
        assert any(_runs(pool, by_id[node]) for pool in pools)
    loads = [(by_id[n].readiness.state is S.FAILED, by_id[n].active) for n in outcome.able]
    assert loads == sorted(loads)
    eligible = [it for it in fleet if any(_runs(pool, it) for pool in pools)]
    if outcome.reason is Reason.IMAGE_PREPARE_FAILED:
        assert eligible
        assert {(v.readiness.state, v.readiness.retry_at, v.online) for v in eligible} == {(S.FAILED, None, True)}
    if outcome.reason is Reason.NO_CAPACITY:
        assert any(v.readiness.state is S.READY and v.active >= v.node.slots for v in eligible)


@ANY
@given(SEEDS, NODES)
def test_what_cannot_take_it_changes_no_placement(seed: int, nodes: int) -> None:
    dice = Random(seed)  # noqa: S311
    pools, fleet = _pools(dice), [_view(dice, n) for n in range(nodes)]
    outcome = place(FROZEN, SIZE, pools, fleet, SESSION)
    strangers = [
        replace(view("stranger"), node=replace(view("stranger").node, provider="nobody")),
        view("absent", Readiness()),
        view("away", online=False),
    ]
    more = place(FROZEN, SIZE, [Pool("nobody", "nobody", AMD, SIZE), *pools], [*strangers, *fleet], SESSION)
    if isinstance(outcome, Placed):
        assert more == outcome
    else:
        assert isinstance(more, Unplaced)
