"""Suspend and resume a Session: `flow.suspend` and `flow.resume` decide, guarded writes apply, nodes are told.

What is kept is a row before its node is told, so whoever dies wherever, the next pass tells the same again.
"""

from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.place_session import reserved, send_start
from sandbay.app.select import current_deployment
from sandbay.app.sessions import find_session
from sandbay.domain.allocation import Allocation, AllocationState
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import NodeId, SessionId, SnapshotId
from sandbay.domain.node import NodeView
from sandbay.domain.placement import Placed
from sandbay.domain.reasons import Reason
from sandbay.domain.session import SessionState
from sandbay.domain.suspension import Suspension
from sandbay.flow.resume import Resume, Suspended, resume
from sandbay.flow.suspend import Suspend, suspend
from sandbay.ports.changes import Conflict, ConflictKind, MoveAllocation, MoveSession, Reserve
from sandbay.ports.records import SessionRecord
from sandbay.ports.snapshots import AddSnapshot, DropSnapshot, SnapshotOf, SnapshotsToDrop
from sandbay.ports.store import Fleet

_TRIES = 5
_RETRY_SECONDS = 5
_LOST_RACES = frozenset({ConflictKind.STALE, ConflictKind.TAKEN, ConflictKind.FULL})


def suspend_session(core: Core, actor: Actor, session: SessionId) -> SessionRecord:
    """Begin to suspend it. Repeating it, or suspending what is suspended, is fine."""
    for _ in range(_TRIES):
        record = find_session(core, session, actor.project)
        outcome = _may_be_suspended(core, record)
        if isinstance(outcome, Refusal):
            raise _refused(outcome)
        if outcome is Suspend.NOTHING or record.allocation is None:
            return record
        if _begin_to_suspend(core, actor, record, record.allocation):
            return find_session(core, session, actor.project)
    raise _restless()


def resume_session(core: Core, actor: Actor, session: SessionId) -> SessionRecord:
    """Begin to resume it on its frozen release, where its state is kept. Repeating it, when it runs too, is fine."""
    for _ in range(_TRIES):
        record = find_session(core, session, actor.project)
        deployment = current_deployment(core)
        outcome = _may_be_resumed(core, record, deployment)
        if isinstance(outcome, Refusal):
            raise _refused(outcome)
        if outcome is Resume.NOTHING:
            return record
        if _begin_to_resume(core, actor, record, outcome, deployment):
            return find_session(core, session, actor.project)
    raise _restless()


def tell_suspend(core: Core, record: SessionRecord) -> None:
    """Tell the node; when it is away, the reconciler tells it again."""
    allocation, snapshot = record.allocation, record.snapshot
    if allocation is None or snapshot is None:
        return
    try:
        core.link.reach(allocation.node).suspend_allocation(allocation.id, snapshot)
    except RefusedError as error:
        if error.refusal.reason is not Reason.NO_NODE_ONLINE:
            raise


def tell_snapshots_to_drop(core: Core, node: NodeId) -> None:
    """What is nobody's any more is let go, and its row says so after it: the node is asked until it has done it."""
    for snapshot in core.store.read(SnapshotsToDrop(node)):
        core.link.reach(node).drop_snapshot(snapshot)
        try:
            core.store.apply(DropSnapshot(snapshot))
        except Conflict as conflict:
            if conflict.kind is not ConflictKind.STALE:  # another Core was faster
                raise


def _may_be_suspended(core: Core, record: SessionRecord) -> Suspend | Refusal:
    allocation = record.allocation
    pools = current_deployment(core).pools
    kind = next((pool.provider for pool in pools if allocation is not None and pool.name == allocation.pool), None)
    declared = core.declarations.get(kind or "")
    holder = _view(core, record, allocation.node) if allocation is not None else None
    online = holder is not None and holder.online
    return suspend(record.session.state, declared.abilities if declared else (), online=online)


def _view(core: Core, record: SessionRecord, node: NodeId) -> NodeView | None:
    fleet = core.store.read(Fleet(record.frozen.content_key, core.clock.now()))
    return next((view for view in fleet if view.node.id == node), None)


def _begin_to_suspend(core: Core, actor: Actor, record: SessionRecord, allocation: Allocation) -> bool:
    now, session = core.clock.now(), record.session
    kept = Suspension(
        SnapshotId(core.ids.new("snapshot")), session.id, allocation.node, session.frozen, session.frozen_digest, now
    )
    running = frozenset({AllocationState.RUNNING})
    try:
        core.store.apply(
            MoveSession(session.id, frozenset({SessionState.RUNNING}), SessionState.SUSPENDING, now),
            MoveAllocation(allocation.id, running, AllocationState.SUSPENDING, now),
            AddSnapshot(kept),
            audit.done(core, actor, "session.suspend", session.id, {"snapshot": kept.id, "node": kept.node}),
        )
    except Conflict as conflict:
        if conflict.kind not in _LOST_RACES:
            raise
        return False
    core.changed.set()
    tell_suspend(core, replace(record, snapshot=kept.id))
    return True


def _may_be_resumed(core: Core, record: SessionRecord, deployment: Deployment) -> Placed | Resume | Refusal:
    session = record.session
    kept = core.store.read(SnapshotOf(session.id))
    holder = None if kept is None else _view(core, record, kept.node)
    return resume(Suspended(session.state, record.frozen, session.resources, holder), deployment.pools)


def _begin_to_resume(core: Core, actor: Actor, record: SessionRecord, placed: Placed, deployment: Deployment) -> bool:
    now, session, frozen = core.clock.now(), record.session, record.frozen
    allocation = reserved(core, session, placed, deployment)
    try:
        core.store.apply(
            MoveSession(session.id, frozenset({SessionState.SUSPENDED}), SessionState.RESUMING, now),
            Reserve(allocation, frozen.content_key, placed.slots, now),
            audit.done(core, actor, "session.resume", session.id, {"node": placed.node, "pool": placed.pool}),
        )
    except Conflict as conflict:
        if conflict.kind not in _LOST_RACES:
            raise
        return False
    core.changed.set()
    resuming = replace(session, state=SessionState.RESUMING)
    send_start(core, replace(record, session=resuming, allocation=allocation))
    return True


def _refused(refusal: Refusal) -> RefusedError:
    facts = dict(refusal.details)
    if refusal.reason.about.retry:
        facts["retry_after"] = _RETRY_SECONDS
    return RefusedError(refusal.reason, refusal.message, param=refusal.param, details=facts)


def _restless() -> RefusedError:
    return RefusedError(Reason.REVISION_STALE, "the Session keeps changing; try again")
