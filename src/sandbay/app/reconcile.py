"""The background pass: whatever the rows say should be under way, is told again until it is done.

Level-triggered: it looks at rows, never at what it remembers, so a crash between any two statements costs
at most one pass. Waiting Sessions are placed, expired or failed; nodes are told what to hold, start, suspend, stop and
check; promotions come to their outcome. Time itself is looked at by `app.outlive`, less often.
"""

from sandbay.app.contracts import tell_checks
from sandbay.app.core import Core
from sandbay.app.place_session import place_waiting, send_start
from sandbay.app.promotions import settle_promotions
from sandbay.app.proofs import consequences
from sandbay.app.select import current_deployment
from sandbay.app.sessions import stop_allocation
from sandbay.app.suspend import tell_snapshots_to_drop, tell_suspend
from sandbay.app.wants import push_wants
from sandbay.domain.allocation import AllocationState
from sandbay.domain.ids import NodeId
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.session import SessionState
from sandbay.domain.want import Why
from sandbay.ports.changes import Conflict, DropUpload
from sandbay.ports.records import Page
from sandbay.ports.store import ExpiredUploads, Needs, Nodes, OpenAllocations, ReadinessRows, Sessions

_TO_START = frozenset({AllocationState.RESERVED, AllocationState.STARTING})
_WISHES = frozenset({Why.WISH, Why.CACHED})
_PAGE = 500


def reconcile(core: Core) -> None:
    """One pass. Safe to repeat and to run beside requests."""
    deployment = current_deployment(core)
    for record in reversed(core.store.read(Sessions(None, frozenset({SessionState.WAITING}), Page(limit=_PAGE)))):
        place_waiting(core, record, deployment)
    for node in core.store.read(Nodes()):
        if push_wants(core, node.id):
            _tell_allocations(core, node.id)
            _tell_drops(core, node.id)
            tell_snapshots_to_drop(core, node.id)
    tell_checks(core)
    _settle_wishes(core)
    settle_promotions(core)
    for upload in core.store.read(ExpiredUploads(core.clock.now())):
        core.uploads.remove(upload.id)
        core.store.apply(DropUpload(upload.id))


def _settle_wishes(core: Core) -> None:
    """What a node has proved already, for another image with the same bytes, it will not report again."""
    cells = {(row.node, row.key): row.readiness for row in core.store.read(ReadinessRows())}
    for need in core.store.read(Needs()):
        if need.why not in _WISHES or need.node is None or (need.node, need.key) not in cells:
            continue
        changes = consequences(core, need.node, need.key, cells[need.node, need.key])
        if not changes:
            continue
        try:
            core.store.apply(*changes)
        except Conflict:
            continue  # something moved meanwhile; the next pass looks again
        core.changed.set()


def _tell_allocations(core: Core, node: NodeId) -> None:
    for record in core.store.read(OpenAllocations(node)):
        if record.allocation is None:
            continue
        if record.allocation.state in _TO_START:
            send_start(core, record)
        elif record.allocation.state is AllocationState.SUSPENDING:
            tell_suspend(core, record)
        elif record.allocation.state is AllocationState.STOPPING:
            stop_allocation(core, record.allocation)


def _tell_drops(core: Core, node: NodeId) -> None:
    for row in core.store.read(ReadinessRows()):
        if row.node == node and row.readiness.state is ReadinessState.EVICTING:
            core.link.reach(node).drop(row.key, row.readiness.attempt)
