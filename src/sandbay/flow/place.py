"""Step 3. A frozen release and the fleet as it stands → one node, or the counted reasons why none.

Pools are tried in their order; within a pool the node with the fewest active allocations wins, ties are
broken by a hash of Session and node, so that every replica decides alike. Only a node that is ready for
exactly this content is a candidate.
"""

import hashlib
from collections.abc import Iterable, Mapping

from sandbay.domain.deployment import Pool, PoolAdmission, SandboxSize
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import SessionId
from sandbay.domain.node import NodeView
from sandbay.domain.placement import FellOut, Placed, Unplaced
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason

_NOT_READY = {
    ReadinessState.ABSENT: FellOut.ABSENT,
    ReadinessState.EVICTING: FellOut.ABSENT,
    ReadinessState.QUEUED: FellOut.PREPARING,
    ReadinessState.PULLING: FellOut.PREPARING,
    ReadinessState.VERIFYING: FellOut.PREPARING,
    ReadinessState.FAILED: FellOut.FAILED,
}
_ELIGIBLE = frozenset({FellOut.ABSENT, FellOut.PREPARING, FellOut.FAILED, FellOut.WARMING})
_UNDER_WAY = frozenset({ReadinessState.QUEUED, ReadinessState.PULLING, ReadinessState.VERIFYING, ReadinessState.READY})
"""READY here: the node is not warm yet."""

Counts = dict[str, dict[FellOut, int]]


def place(
    frozen: FrozenRelease, resources: SandboxSize, pools: Iterable[Pool], fleet: Iterable[NodeView], session: SessionId
) -> Placed | Unplaced:
    """`fleet` holds each node once, with its readiness for `frozen.content_key`."""
    pools = tuple(pools)
    views = sorted(fleet, key=lambda v: (v.active, _shuffled(session, v.node.id)))
    counts: Counts = {}
    for pool in pools:
        outside = _pool_fell_out(frozen, resources, pool)
        if outside is not None:
            counts[pool.name] = {outside: 0}
            continue
        members = [v for v in views if v.node.serves(pool)]
        fell = [(v, _node_fell_out(v)) for v in members]
        winner = next((v for v, why in fell if why is None), None)
        if winner is not None:
            return Placed(winner.node.id, pool.name, winner.node.slots)
        tally: dict[FellOut, int] = {} if members else {FellOut.NO_NODES: 0}
        for _, why in fell:
            if why is not None:
                tally[why] = tally.get(why, 0) + 1
        counts[pool.name] = tally
    return _unplaced(counts, [v for v in views if _eligible(frozen, resources, pools, v)])


def _shuffled(session: SessionId, node: str) -> bytes:
    return hashlib.sha256(f"{session} {node}".encode()).digest()


def _pool_fell_out(frozen: FrozenRelease, resources: SandboxSize, pool: Pool) -> FellOut | None:
    if pool.provider not in frozen.providers or pool.platform != frozen.platform:
        return FellOut.PROVIDER
    if not pool.size.holds(resources):
        return FellOut.TOO_SMALL
    return FellOut.PAUSED if pool.admission is PoolAdmission.PAUSED else None


def _node_fell_out(view: NodeView) -> FellOut | None:
    if not view.online:
        return FellOut.OFFLINE
    if not view.node.warm:
        return FellOut.WARMING
    if view.readiness.state is not ReadinessState.READY:
        return _NOT_READY[view.readiness.state]
    return FellOut.FULL if view.active >= view.node.slots else None


def _eligible(frozen: FrozenRelease, resources: SandboxSize, pools: Iterable[Pool], view: NodeView) -> bool:
    return _node_fell_out(view) in _ELIGIBLE and any(
        view.node.serves(pool) and _pool_fell_out(frozen, resources, pool) is None for pool in pools
    )


def _unplaced(counts: Counts, eligible: list[NodeView]) -> Unplaced:
    total: dict[FellOut, int] = {}
    for tally in counts.values():
        for why, number in tally.items():
            total[why] = total.get(why, 0) + number
    able = sorted((v for v in eligible if not _hopeless(v.readiness)), key=lambda v: _failed(v.readiness))
    reason = _reason(total, eligible, able)
    facts: dict[str, object] = {}
    if reason is Reason.IMAGE_NOT_READY:
        under_way = [v.readiness for v in eligible if v.readiness.state in _UNDER_WAY]
        facts = {"state": _state(eligible), "best_percent": max(map(_percent, under_way), default=0)}
    if reason is Reason.IMAGE_PREPARE_FAILED:
        facts = {"diagnostics": {v.node.name: v.readiness.fault.reason.value for v in eligible if v.readiness.fault}}
    return Unplaced(reason, counts, tuple(v.node.id for v in able), facts)


def _failed(readiness: Readiness) -> bool:
    return readiness.state is ReadinessState.FAILED


def _hopeless(readiness: Readiness) -> bool:
    """Failed, and time alone will not help."""
    return _failed(readiness) and readiness.retry_at is None


def _reason(total: Mapping[FellOut, int], eligible: list[NodeView], able: list[NodeView]) -> Reason:
    """The nearest thing to a yes names the no: full before preparing before offline before paused."""
    if total.get(FellOut.FULL):
        return Reason.NO_CAPACITY
    if eligible:
        # What an unheard node can still do is unknown, and unknown is not "never".
        return Reason.IMAGE_NOT_READY if able or total.get(FellOut.OFFLINE) else Reason.IMAGE_PREPARE_FAILED
    if total.get(FellOut.OFFLINE) or FellOut.NO_NODES in total:
        return Reason.NO_NODE_ONLINE
    for outside, reason in (
        (FellOut.PAUSED, Reason.POOL_PAUSED),
        (FellOut.TOO_SMALL, Reason.RESOURCE_UNSUPPORTED),
    ):
        if outside in total:
            return reason
    return Reason.IMAGE_UNSUPPORTED


def _state(eligible: list[NodeView]) -> str:
    if any(v.readiness.state in _UNDER_WAY for v in eligible):
        return "preparing"
    return "failed_some" if any(_failed(v.readiness) for v in eligible) else "absent"


def _percent(readiness: Readiness) -> int:
    return 100 * readiness.bytes_done // readiness.bytes_total if readiness.bytes_total else 0
