"""Whether a suspended Session can be resumed now and where, or why not. Pure; `app.suspend` applies it.

Always on its frozen release and on the node that keeps its state: no channel, no default, no list and no state of an
image is looked at, so nothing that has changed meanwhile can change what it runs. A release whose bytes are gone is
`image_lost`, never another one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sandbay.domain.deployment import Pool, PoolAdmission, SandboxSize
from sandbay.domain.errors import Refusal
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.node import NodeView
from sandbay.domain.placement import Placed
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState


class Resume(StrEnum):
    """What there is to do when nothing is to be placed."""

    NOTHING = "nothing"


_SO_ALREADY = frozenset({SessionState.RESUMING, SessionState.RUNNING})
_OVER = FINAL | {SessionState.ENDING}
_GONE = frozenset({Reason.BLOB_MISSING, Reason.CONTENT_LOST})


@dataclass(frozen=True)
class Suspended:
    """A Session to be resumed. `holder` is the node that keeps its state, with its readiness for the release."""

    state: SessionState
    frozen: FrozenRelease
    resources: SandboxSize
    holder: NodeView | None


def resume(it: Suspended, pools: Iterable[Pool]) -> Placed | Resume | Refusal:
    """`pools` in the deployment's order. Repeating it is fine."""
    if it.state in _SO_ALREADY:
        return Resume.NOTHING
    facts = {"status": it.state.value}
    if it.state in _OVER:
        return Refusal(Reason.ALREADY_ENDED, f"the Session is {it.state.value}", details=facts)
    if it.state is not SessionState.SUSPENDED:
        return Refusal(Reason.NOT_SUSPENDED, f"the Session is {it.state.value}", details=facts)
    if it.holder is None or not it.holder.online:
        return Refusal(Reason.SNAPSHOT_NODE_OFFLINE, "the node that keeps the Session's state is not online")
    unready = _unready(it.holder)
    return unready if unready is not None else _placed(it, it.holder, tuple(pools))


def _unready(holder: NodeView) -> Refusal | None:
    cell = holder.readiness
    if cell.state is ReadinessState.FAILED and cell.retry_at is None:
        return _lost(cell)
    if cell.state is not ReadinessState.READY or not holder.node.warm:
        message = "the node that keeps the Session's state is still preparing its release"
        return Refusal(Reason.IMAGE_NOT_READY, message, details={"state": cell.state.value})
    return None


def _lost(cell: Readiness) -> Refusal:
    """Bytes that are nowhere any more are told apart from those that this node cannot get."""
    why = cell.fault.reason if cell.fault is not None else None
    facts = {} if why is None else {"last": why.value}
    if why in _GONE:
        return Refusal(Reason.IMAGE_LOST, "the bytes of the Session's release are gone", details=facts)
    message = "the node that keeps the Session's state failed to prepare its release"
    return Refusal(Reason.IMAGE_PREPARE_FAILED, message, details=facts)


def _placed(it: Suspended, holder: NodeView, pools: tuple[Pool, ...]) -> Placed | Refusal:
    able = [
        pool
        for pool in pools
        if holder.node.serves(pool) and pool.provider in it.frozen.providers and pool.platform == it.frozen.platform
    ]
    if not able:
        return Refusal(Reason.IMAGE_UNSUPPORTED, "the node that keeps the Session's state is in no pool that runs it")
    large = [pool for pool in able if pool.size.holds(it.resources)]
    if not large:
        return Refusal(Reason.RESOURCE_UNSUPPORTED, "no pool of that node has a sandbox as large as was asked")
    active = [pool for pool in large if pool.admission is not PoolAdmission.PAUSED]
    if not active:
        return Refusal(Reason.POOL_PAUSED, "every pool that could run it there is paused")
    if holder.active >= holder.node.slots:
        return Refusal(Reason.NO_CAPACITY, "the node that keeps the Session's state is full")
    return Placed(holder.node.id, active[0].name, holder.node.slots)
