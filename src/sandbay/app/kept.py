"""What becomes of suspended state when a node reports: the changes, for `app.nodes` to apply."""

from collections.abc import Sequence

from sandbay.app import audit
from sandbay.app.core import SYSTEM, Core
from sandbay.domain.allocation import AllocationState
from sandbay.domain.release import Fault
from sandbay.domain.session import SessionState
from sandbay.ports.changes import Change, MoveAllocation, MoveSession
from sandbay.ports.node_link import AllocationReport
from sandbay.ports.records import SessionRecord
from sandbay.ports.snapshots import HoldSnapshot, LetGoSnapshots

_SUSPENDING = frozenset({SessionState.SUSPENDING})


def suspended(core: Core, record: SessionRecord, size: int) -> Sequence[Change]:
    """Its node keeps the state, of `size` bytes."""
    session, now = record.session, core.clock.now()
    held = [] if record.snapshot is None else [HoldSnapshot(record.snapshot, size)]
    told = audit.done(core, SYSTEM, "session.suspended", session.id, {"bytes": size})
    return [MoveSession(session.id, _SUSPENDING, SessionState.SUSPENDED, now), *held, told]


def not_suspended(core: Core, record: SessionRecord, report: AllocationReport) -> list[Change]:
    """It could not be kept and runs on, with the fault told."""
    session, now, fault = record.session, core.clock.now(), report.fault
    suspending = frozenset({AllocationState.SUSPENDING})
    return [
        MoveAllocation(report.allocation, suspending, AllocationState.RUNNING, now),
        MoveSession(session.id, _SUSPENDING, SessionState.RUNNING, now, fault),
        LetGoSnapshots(session.id),
    ]


def back_to_suspended(core: Core, record: SessionRecord, fault: Fault) -> MoveSession:
    """It did not start; what was kept is kept on."""
    resuming = frozenset({SessionState.RESUMING})
    return MoveSession(record.session.id, resuming, SessionState.SUSPENDED, core.clock.now(), fault)
