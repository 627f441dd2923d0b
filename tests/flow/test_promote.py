"""What becomes of a gated promotion, over every state that a node can be in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.ids import ImageId, NodeId, PromotionId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.platform import Platform
from sandbay.domain.promotion import Promotion
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault
from sandbay.flow.promote import Fails, PromotionView, Settles, Waits, progress, promote

S = ReadinessState
NOW = datetime(2026, 1, 2, tzinfo=UTC)
OVER = NOW + timedelta(seconds=60)
RETIRED = Fault(Reason.RELEASE_RETIRED, "it is retired")
BAD = Fault(Reason.MALFORMED_LAYER, "it is no tar")
READY = Readiness(S.READY)
FAILED = Readiness(S.FAILED, fault=BAD)
RETRIED = replace(FAILED, retry_at=NOW)


def on(name: str, readiness: Readiness, *, online: bool = True) -> NodeView:
    return NodeView(
        Node(NodeId(f"node_{name}"), name, "oci", "runc", Platform("linux", "amd64"), 4), online, 0, readiness
    )


def view(*nodes: NodeView, gate: int | None = None, **changes: Any) -> PromotionView:
    asked = Promotion(PromotionId("prm_1"), ImageId("img_web"), "stable", 2, 1, 1, gate, OVER, NOW, "ann")
    return replace(PromotionView(asked, NOW, asked.expected, None, nodes), **changes)


def why(of: PromotionView) -> Reason:
    outcome = promote(of)
    assert isinstance(outcome, Fails)
    return outcome.fault.reason


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("online", [True, False])
def test_only_a_node_that_is_heard_and_ready_counts(state: ReadinessState, *, online: bool) -> None:
    beside = on("b", READY)
    outcome = promote(view(on("a", Readiness(state, retry_at=NOW), online=online), beside))
    counts = online and state is S.READY
    assert outcome == (Settles() if counts else Waits(1, 2))


@pytest.mark.parametrize(
    "gate, ready, others, settles",
    [
        (None, 1, 0, True),
        (None, 0, 0, False),
        (None, 1, 1, False),
        (1, 1, 5, True),
        (2, 1, 5, False),
        (2, 2, 0, True),
        (3, 2, 0, False),
    ],
)
def test_so_many_or_all(gate: int | None, ready: int, others: int, *, settles: bool) -> None:
    nodes = [on(f"r{n}", READY) for n in range(ready)] + [on(f"o{n}", Readiness(S.PULLING)) for n in range(others)]
    outcome = promote(view(*nodes, gate=gate))
    assert isinstance(outcome, Settles) is settles


def test_nobody_to_run_it_is_nobody_ready() -> None:
    assert promote(view()) == Waits(0, 1)
    assert promote(view(gate=3)) == Waits(0, 3)


def test_the_time_is_over_even_when_all_are_ready_by_then() -> None:
    """Whoever was told an hour is not surprised in the second one, be it that Core was down meanwhile."""
    before = OVER - timedelta(microseconds=1)
    assert promote(view(on("a", READY), now=before)) == Settles()
    late = promote(view(on("a", READY), on("b", RETRIED), now=OVER))
    assert isinstance(late, Fails)
    assert late.fault.reason is Reason.WAIT_EXPIRED
    told = {"ready": 1, "needed": 2, "missing": ["b"], "diagnostics": {"b": "malformed_layer"}}
    assert late.fault.details == told
    assert why(view(on("a", READY), now=OVER)) is Reason.WAIT_EXPIRED


@pytest.mark.parametrize("late", [False, True])
def test_a_channel_that_moved_meanwhile_and_a_release_that_became_unfit_are_the_reason(*, late: bool) -> None:
    """Whatever the nodes say, and before the time."""
    now = OVER if late else NOW
    moved = view(on("a", READY), revision=2, unfit=RETIRED, now=now)
    outcome = promote(moved)
    assert isinstance(outcome, Fails)
    assert (outcome.fault.reason, outcome.fault.details) == (Reason.REVISION_STALE, {"expected": 1, "current": 2})
    assert promote(replace(moved, revision=1)) == Fails(RETIRED)


@pytest.mark.parametrize(
    "gate, nodes, gives_up",
    [
        (None, (FAILED, READY), True),
        (None, (RETRIED, READY), False),
        (1, (FAILED, Readiness()), False),
        (1, (FAILED, FAILED), True),
        (2, (FAILED, READY, Readiness()), False),
        (2, (FAILED, READY), True),
        (5, (FAILED, READY), False),
    ],
)
def test_what_nodes_failed_at_for_good_is_not_waited_for(
    gate: int | None, nodes: tuple[Readiness, ...], *, gives_up: bool
) -> None:
    """Unless more nodes than there are were asked for: those may still come."""
    outcome = promote(view(*(on(f"n{n}", it) for n, it in enumerate(nodes)), gate=gate))
    if gives_up:
        assert isinstance(outcome, Fails)
        assert outcome.fault.reason is Reason.IMAGE_PREPARE_FAILED
        assert outcome.fault.details["diagnostics"]
    else:
        assert isinstance(outcome, Waits)


READINESS = st.builds(Readiness, st.sampled_from(S), retry_at=st.sampled_from([None, NOW]))


@given(
    st.lists(st.tuples(READINESS, st.booleans()), max_size=5),
    st.none() | st.integers(1, 6),
    st.timedeltas(timedelta(seconds=-90), timedelta(seconds=90)),
)
def test_it_settles_exactly_when_it_may(
    nodes: list[tuple[Readiness, bool]], gate: int | None, after: timedelta
) -> None:
    views = tuple(on(str(n), it, online=online) for n, (it, online) in enumerate(nodes))
    asked = view(*views, gate=gate, now=NOW + after)
    ready = [it for it in views if it.online and it.readiness.state is S.READY]
    enough = len(ready) >= gate if gate else bool(views) and len(ready) == len(views)
    assert isinstance(promote(asked), Settles) is (enough and NOW + after < asked.promotion.deadline)
    assert promote(asked) == promote(asked)
    assert progress(asked.promotion, views).ready == len(ready)
