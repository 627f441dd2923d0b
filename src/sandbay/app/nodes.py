"""What nodes tell Core, and what becomes of it: readiness, proofs, allocations.

Every report carries its epoch; what an older epoch says changes nothing. What a proof means for releases is
`app.proofs`' to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.contracts import settle_check
from sandbay.app.core import SYSTEM, Core
from sandbay.app.disk import grant
from sandbay.app.kept import back_to_suspended, not_suspended, suspended
from sandbay.app.place_session import order_of
from sandbay.app.proofs import consequences, lost
from sandbay.app.secrets import secret_variables
from sandbay.app.wants import wanted_for
from sandbay.domain.allocation import AllocationState, mismatch
from sandbay.domain.ids import AllocationId, NodeId
from sandbay.domain.node import Node
from sandbay.domain.readiness import Readiness, ReadinessState, may_follow
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault
from sandbay.domain.session import SessionState
from sandbay.domain.template import FrozenTemplate
from sandbay.ports.changes import (
    Change,
    Conflict,
    ConflictKind,
    MoveAllocation,
    MoveSession,
    PutNode,
    PutReadiness,
    SeeNode,
)
from sandbay.ports.node_link import AllocationReport, Assigned, CheckOutcome, Hello, NodeCommands, Welcome
from sandbay.ports.records import ReadinessRow, SessionRecord
from sandbay.ports.snapshots import LetGoSnapshots
from sandbay.ports.store import FrozenTemplateOf, Nodes, OpenAllocations, ReadinessRows

_STATES_OF_BYTES = frozenset({ReadinessState.PULLING, ReadinessState.QUEUED})
_TRIES = 5


class NodeReports:
    """The port `CoreReports`, behind the link."""

    def __init__(self, core: Core) -> None:
        """Serve one Core."""
        self._core = core

    def hello(self, hello: Hello, commands: NodeCommands) -> Welcome:
        """A new epoch: cells become what the node found on disk, still to be proved again."""
        del commands  # the link keeps them; Core reaches the node through it
        core = self._core
        known = next((n for n in core.store.read(Nodes()) if n.id == hello.node), None)
        node = Node(
            id=hello.node,
            name=hello.name,
            provider=hello.provider,
            runtime=hello.runtime,
            platform=hello.platform,
            slots=hello.slots,
            labels=dict(hello.labels),
            epoch=(known.epoch if known else 0) + 1,
            last_seen=core.clock.now(),
            networks=hello.networks,
        )
        cells = [
            PutReadiness(node.id, node.epoch, row.key, _found(row, hello.held), None)
            for row in core.store.read(ReadinessRows())
            if row.node == node.id
        ]
        core.store.apply(PutNode(node), *cells, audit.done(core, SYSTEM, "node.hello", node.id))
        core.changed.set()
        assigned = [_assigned(core, record) for record in core.store.read(OpenAllocations(node.id))]
        return Welcome(node.epoch, wanted_for(core, node.id), assigned)

    def heartbeat(self, node: NodeId, epoch: int, *, warm: bool) -> bool:
        """Still here."""
        return self._accepted(SeeNode(node, epoch, self._core.clock.now(), warm))

    def readiness(self, node: NodeId, epoch: int, key: ContentKey, readiness: Readiness) -> bool:
        """Store what moved; bytes alone are kept in memory."""
        core = self._core
        row = next((r for r in core.store.read(ReadinessRows(key)) if r.node == node), None)
        stored = row.readiness if row else Readiness()
        if not may_follow(stored, readiness):
            return False
        if readiness.state in _STATES_OF_BYTES:
            core.progress[node, key] = readiness
        core.metrics.moved(node, key, stored, readiness, core.clock.now())
        if _same(stored, readiness):
            core.changed.set()
            return True
        if readiness.state not in _STATES_OF_BYTES:
            core.progress.pop((node, key), None)
        put = PutReadiness(node, epoch, key, readiness, row.readiness.attempt if row else None)
        return self._settle(put, readiness)

    def _settle(self, put: PutReadiness, readiness: Readiness) -> bool:
        """The cell and what follows from it, together; on a lost race everything is derived again."""
        for _ in range(_TRIES):
            try:
                what = (self._core, put.node, put.key, readiness)
                self._core.store.apply(put, *consequences(*what), *lost(*what))
            except Conflict as conflict:
                if conflict.change == put:
                    return False
                continue
            self._core.changed.set()
            return True
        return False

    def spare(self, node: NodeId, epoch: int, keys: Sequence[ContentKey]) -> frozenset[ContentKey]:
        """Grant what nothing needs there; a node of an older epoch gets no grant."""
        current = next((n for n in self._core.store.read(Nodes()) if n.id == node), None)
        return grant(self._core, current, keys) if current is not None and current.epoch == epoch else frozenset()

    def allocation(self, node: NodeId, epoch: int, report: AllocationReport) -> bool:
        """Store where an allocation stands. A booted identity that is not the frozen one closes it."""
        core = self._core
        current = next((n for n in core.store.read(Nodes()) if n.id == node), None)
        record = self._record(node, report.allocation)
        if current is None or current.epoch != epoch or record is None:
            return False
        if report.state is AllocationState.STARTING:
            return self._preparing(record, report)
        core.setups.pop(record.session.id, None)
        if _is_late(record, report):
            return True
        if report.state is AllocationState.RUNNING:
            changes = _running(core, record, report)
        else:
            changes = _closed(core, record, report)
        accepted = self._accepted(*changes)
        first = record.session.state is SessionState.STARTING
        if accepted and first and any(isinstance(it, MoveSession) and it.to is SessionState.RUNNING for it in changes):
            core.metrics.started(record.session.created_at, core.clock.now())
        return accepted

    def checked(self, node: NodeId, epoch: int, outcome: CheckOutcome) -> bool:
        """Store what a check saw, with what it means for the release; or why it saw nothing yet."""
        current = next((n for n in self._core.store.read(Nodes()) if n.id == node), None)
        return current is not None and current.epoch == epoch and settle_check(self._core, node, outcome)

    def _preparing(self, record: SessionRecord, report: AllocationReport) -> bool:
        """That it began is a row; how far it is costs nothing to lose."""
        core, allocation = self._core, record.allocation
        if allocation is None or allocation.state not in _BEFORE_RUNNING:
            return False
        if report.setup is not None:
            core.setups[record.session.id] = report.setup
        core.changed.set()
        if allocation.state is not AllocationState.RESERVED:
            return True
        before = frozenset({AllocationState.RESERVED})
        return self._accepted(MoveAllocation(allocation.id, before, AllocationState.STARTING, core.clock.now()))

    def template(self, node: NodeId, allocation: AllocationId) -> FrozenTemplate | None:
        """Only of this node's own open allocations."""
        record = self._record(node, allocation)
        digest = record.session.template_digest if record else None
        return None if digest is None else self._core.store.read(FrozenTemplateOf(digest))

    def secrets(self, node: NodeId, allocation: AllocationId) -> Mapping[str, str]:
        """Only of this node's own open allocations."""
        record = self._record(node, allocation)
        return secret_variables(self._core, record.session) if record else {}

    def _record(self, node: NodeId, allocation: AllocationId) -> SessionRecord | None:
        records = self._core.store.read(OpenAllocations(node))
        return next((r for r in records if r.allocation is not None and r.allocation.id == allocation), None)

    def _accepted(self, *changes: Change) -> bool:
        try:
            self._core.store.apply(*changes)
        except Conflict as conflict:
            if conflict.kind not in (ConflictKind.STALE, ConflictKind.MISSING):
                raise
            return False
        self._core.changed.set()
        return True


def _found(row: ReadinessRow, held: Sequence[ContentKey]) -> Readiness:
    """At hello: what is on disk and pinned is to be verified again; anything else is absent.

    Without a pin the bytes were being fetched or were granted to be dropped: the node fetches on, or lets them go.
    """
    if row.pinned and row.key in held:
        return replace(row.readiness, state=ReadinessState.VERIFYING, attempt=0, fault=None, retry_at=None)
    return Readiness()


def _same(stored: Readiness, reported: Readiness) -> bool:
    """Whether only bytes moved."""
    return stored == replace(reported, bytes_done=stored.bytes_done, bytes_total=stored.bytes_total)


def _assigned(core: Core, record: SessionRecord) -> Assigned:
    allocation = record.allocation
    state = allocation.state if allocation else AllocationState.CLOSED
    return Assigned(order_of(core, record), state, record.snapshot)


def _is_late(record: SessionRecord, report: AllocationReport) -> bool:
    """It still ran when Core had asked already to suspend it: true, known, and no reason to end it there."""
    suspending = record.allocation is not None and record.allocation.state is AllocationState.SUSPENDING
    return suspending and report.state is AllocationState.RUNNING and report.fault is None


_BEFORE_RUNNING = frozenset({AllocationState.RESERVED, AllocationState.STARTING, AllocationState.RUNNING})
_OPEN = _BEFORE_RUNNING | {AllocationState.SUSPENDING, AllocationState.STOPPING}
_NO_LONGER = Fault(Reason.NODE_LOST, "the node no longer has the sandbox")


def _running(core: Core, record: SessionRecord, report: AllocationReport) -> list[Change]:
    now = core.clock.now()
    session = record.session
    wrong = mismatch(record.frozen, report.booted) if report.booted else {"booted": ("", None)}
    if wrong:
        message = "what booted is not what was frozen"
        fault = Fault(Reason.IMAGE_MISMATCH, message, {name: list(pair) for name, pair in wrong.items()})
        resuming = session.state is SessionState.RESUMING
        failed = MoveSession(session.id, _STARTED, SessionState.FAILED, now, fault)
        stopping = MoveAllocation(report.allocation, _BEFORE_RUNNING, AllocationState.STOPPING, now, fault)
        return [stopping, back_to_suspended(core, record, fault) if resuming else failed]
    if session.state is SessionState.SUSPENDING:
        return not_suspended(core, record, report)
    moves: list[Change] = [MoveAllocation(report.allocation, _BEFORE_RUNNING, AllocationState.RUNNING, now)]
    if session.state in (SessionState.STARTING, SessionState.RESUMING):
        moves.append(MoveSession(session.id, frozenset({session.state}), SessionState.RUNNING, now))
    if session.state is SessionState.RESUMING:
        moves.append(LetGoSnapshots(session.id))
    return moves


_STARTED = frozenset({SessionState.STARTING, SessionState.RUNNING, SessionState.SUSPENDING})


def _closed(core: Core, record: SessionRecord, report: AllocationReport) -> list[Change]:
    """The end of an allocation ends its Session: as asked when it was ending, else by the fault."""
    now = core.clock.now()
    session = record.session
    moves: list[Change] = [MoveAllocation(report.allocation, _OPEN, AllocationState.CLOSED, now, report.fault)]
    if session.state is SessionState.ENDING:
        moves.append(MoveSession(session.id, frozenset({session.state}), SessionState.ENDED, now))
    elif session.state is SessionState.SUSPENDING and report.snapshot_bytes is not None:
        moves += suspended(core, record, report.snapshot_bytes)
    elif session.state is SessionState.RESUMING:
        moves.append(back_to_suspended(core, record, report.fault or _NO_LONGER))
    elif session.state in _STARTED:
        fault = report.fault or _NO_LONGER
        moves.append(LetGoSnapshots(session.id))
        moves.append(MoveSession(session.id, frozenset({session.state}), SessionState.FAILED, now, fault))
        moves.append(audit.done(core, SYSTEM, "session.fail", session.id, {"reason": fault.reason.value}))
    return moves
