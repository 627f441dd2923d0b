"""Place a frozen release: the view, the wish when nothing is ready, the reservation, the order to the node.

What was frozen is only ever read here. A Session that waits is placed again on every pass of the reconciler
until it has a node, its time is up, or no node can ever prepare it.
"""

from sandbay.app import audit
from sandbay.app.core import SYSTEM, Core
from sandbay.domain.allocation import Allocation, Order
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import AllocationId
from sandbay.domain.placement import Placed, Unplaced
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault
from sandbay.domain.session import Session, SessionState, WaitingFor
from sandbay.flow.enforce import Enforcing, enforce
from sandbay.flow.place import place
from sandbay.ports.changes import AddWish, Change, Conflict, ConflictKind, MoveSession, Reserve
from sandbay.ports.records import SessionRecord
from sandbay.ports.store import Fleet

_MESSAGES = {
    Reason.IMAGE_NOT_READY: "no node holds this release yet; it is being prepared",
    Reason.NO_CAPACITY: "every node that holds this release is full",
    Reason.NO_NODE_ONLINE: "no node that could run it is online",
    Reason.POOL_PAUSED: "every pool that could run it is paused",
    Reason.IMAGE_PREPARE_FAILED: "every node that could run it failed to prepare it",
    Reason.RESOURCE_UNSUPPORTED: "no pool has a sandbox as large as asked",
    Reason.IMAGE_UNSUPPORTED: "no pool of the deployment can run it",
}
_PARAMS = {Reason.RESOURCE_UNSUPPORTED: "resources"}
_RETRY_SECONDS = 5


def enforcing(core: Core, deployment: Deployment, frozen: FrozenRelease, *networks: Network) -> Enforcing:
    """The pools and nodes that enforce all these modes; `network_unsupported` when that leaves none that fits."""
    fleet = core.store.read(Fleet(frozen.content_key, core.clock.now()))
    declared = {kind: declaration.networks for kind, declaration in core.declarations.items()}
    outcome = enforce(frozen, networks, deployment.pools, fleet, declared)
    if isinstance(outcome, Refusal):
        raise RefusedError.of(outcome)
    return outcome


def unplaced(outcome: Unplaced) -> RefusedError:
    """The refusal with its counts."""
    counts = {pool: {why.value: n for why, n in tally.items()} for pool, tally in outcome.counts.items()}
    details = {"pools": counts, **outcome.facts}
    if outcome.reason.about.retry:
        details["retry_after"] = _RETRY_SECONDS
    return RefusedError(outcome.reason, _MESSAGES[outcome.reason], param=_PARAMS.get(outcome.reason), details=details)


def wish_for(core: Core, frozen: FrozenRelease, outcome: Unplaced) -> list[Change]:
    """Want it on the least loaded node that could prepare it."""
    return [AddWish(frozen.content_key, node, core.clock.now()) for node in outcome.able[:1]]


def reserved(core: Core, session: Session, placed: Placed, deployment: Deployment) -> Allocation:
    """The lease to open on the node that was decided, with the size that its pool has now."""
    pool = next(p for p in deployment.pools if p.name == placed.pool)
    return Allocation(
        id=AllocationId(core.ids.new("allocation")),
        session=session.id,
        node=placed.node,
        pool=placed.pool,
        size=pool.size,
        frozen=session.frozen,
        frozen_digest=session.frozen_digest,
    )


def waiting_for(outcome: Unplaced) -> WaitingFor:
    """What a Session waits for, as people are told."""
    return WaitingFor.CAPACITY if outcome.reason is Reason.NO_CAPACITY else WaitingFor.IMAGE


def order_of(core: Core, record: SessionRecord) -> Order:
    """What the node is told: nothing in it is left to choose."""
    session, allocation = record.session, record.allocation
    if allocation is None:
        msg = f"{session.id} has no allocation"
        raise LookupError(msg)
    if session.state is SessionState.RESUMING:
        return _order_to_resume(record, allocation)
    return Order(
        allocation.id,
        session.id,
        record.frozen,
        allocation.size,
        session.network,
        session.env,
        session.setup_network,
        session.template_digest,
        core.settings.setup_seconds,
    )


def _order_to_resume(record: SessionRecord, allocation: Allocation) -> Order:
    """From what was kept; it was initialised before, and is not again."""
    session = record.session
    if record.snapshot is None:
        msg = f"nothing is kept of {session.id}"
        raise LookupError(msg)
    return Order(
        allocation.id,
        session.id,
        record.frozen,
        allocation.size,
        session.network,
        session.env,
        snapshot=record.snapshot,
    )


def send_start(core: Core, record: SessionRecord) -> None:
    """Tell the node; when it is away, the reconciler tells it again."""
    if record.allocation is None:
        return
    try:
        core.link.reach(record.allocation.node).start_allocation(order_of(core, record))
    except RefusedError as error:
        if error.refusal.reason is not Reason.NO_NODE_ONLINE:
            raise


def place_waiting(core: Core, record: SessionRecord, deployment: Deployment) -> None:
    """One more try for a waiting Session. Another replica may be faster; that is no fault."""
    session, frozen = record.session, record.frozen
    now = core.clock.now()
    try:
        able = enforcing(core, deployment, frozen, session.network, session.setup_network or session.network)
        outcome = place(frozen, session.resources, able.pools, able.fleet, session.id)
        if isinstance(outcome, Placed):
            _start(core, session, frozen, outcome, deployment)
            return
        refusal = unplaced(outcome).refusal
    except RefusedError as error:
        refusal, outcome = error.refusal, Unplaced(error.refusal.reason)
    if not refusal.reason.about.retry:
        _fail(core, session, refusal)
    elif session.wait_until is not None and session.wait_until <= now:
        facts = {"last": refusal.reason.value, **refusal.details}
        _fail(core, session, Refusal(Reason.WAIT_EXPIRED, f"the time to wait is over: {refusal.message}", None, facts))
    else:
        core.store.apply(*wish_for(core, frozen, outcome))


def _start(core: Core, session: Session, frozen: FrozenRelease, placed: Placed, deployment: Deployment) -> None:
    now = core.clock.now()
    allocation = reserved(core, session, placed, deployment)
    try:
        core.store.apply(
            MoveSession(session.id, frozenset({SessionState.WAITING}), SessionState.STARTING, now),
            Reserve(allocation, frozen.content_key, placed.slots, now),
            audit.done(core, SYSTEM, "session.place", session.id, {"node": placed.node, "pool": placed.pool}),
        )
    except Conflict as conflict:
        if conflict.kind not in (ConflictKind.FULL, ConflictKind.STALE):
            raise
        return
    core.changed.set()
    send_start(core, SessionRecord(session, frozen, allocation))


def _fail(core: Core, session: Session, refusal: Refusal) -> None:
    fault = Fault(refusal.reason, refusal.message, refusal.details)
    move = MoveSession(session.id, frozenset({SessionState.WAITING}), SessionState.FAILED, core.clock.now(), fault)
    try:
        core.store.apply(move, audit.done(core, SYSTEM, "session.fail", session.id, {"reason": refusal.reason.value}))
    except Conflict as conflict:
        if conflict.kind is not ConflictKind.STALE:
            raise
    core.changed.set()
