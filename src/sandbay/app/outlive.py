"""Time goes by: what `flow.outlive` says of each Session is told or done."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from sandbay.app import audit
from sandbay.app.core import SYSTEM, Core
from sandbay.app.sessions import OPEN, end_session, stop_allocation
from sandbay.app.uses import KEEP_AFTER
from sandbay.domain.allocation import AllocationState
from sandbay.domain.ids import NodeId
from sandbay.domain.release import Fault
from sandbay.domain.session import FINAL, SessionState
from sandbay.flow.outlive import End, Fail, Fate, Finish, Foretell, Living, Shelve, outlive
from sandbay.ports import lives
from sandbay.ports.changes import Change, Conflict, MoveAllocation, MoveSession
from sandbay.ports.records import Page, SessionRecord
from sandbay.ports.snapshots import LetGoSnapshots
from sandbay.ports.store import Nodes, Sessions

_NOT_FINAL = frozenset(SessionState) - FINAL
_PAGE = 500


def outlive_sessions(core: Core) -> None:
    """One look at all that live. A lost race is looked at again at the next one."""
    now = core.clock.now()
    away = _away(core, now)
    for record in _living(core):
        fate = outlive(_as_time_sees(core, record, away, now), now)
        _keep_uses(core, record, now)
        try:
            _apply(core, record, fate, now)
        except Conflict:
            continue


def _living(core: Core) -> Iterator[SessionRecord]:
    page = Page(limit=_PAGE)
    while records := core.store.read(Sessions(None, _NOT_FINAL, page)):
        yield from records
        page = Page(limit=_PAGE, after=records[-1].session.id)


def _away(core: Core, now: datetime) -> Mapping[NodeId, datetime]:
    """Since when nodes have not been heard of; while this Core was not there, none could be."""
    nodes = [node for node in core.store.read(Nodes()) if not node.online(now)]
    return {node.id: max(node.last_seen or core.since, core.since) for node in nodes}


def _keep_uses(core: Core, record: SessionRecord, now: datetime) -> None:
    """Write down what this Core knows of its use, where it matters to whoever looks at the row."""
    session = record.session
    _, used = core.uses.of(session.id, now)
    known = session.used_at or session.created_at
    if used is None or not (used > known if session.foretold else used - known > KEEP_AFTER):
        return
    core.store.apply(lives.UseSession(session.id, used))
    core.uses.forget(session.id, used)


def _as_time_sees(core: Core, record: SessionRecord, away: Mapping[NodeId, datetime], now: datetime) -> Living:
    session, allocation = record.session, record.allocation
    busy, used = core.uses.of(session.id, now)
    uses = [at for at in (used, session.used_at) if at is not None]
    return Living(
        session.state,
        session.life,
        session.created_at,
        session.since,
        timedelta(seconds=core.settings.setup_seconds),
        used_at=max(uses, default=None),
        busy=busy,
        away_since=away.get(allocation.node) if allocation else None,
        foretold=session.foretold,
        kept=core.settings.snapshot_retention,
    )


def _apply(core: Core, record: SessionRecord, fate: Fate, now: datetime) -> None:
    session = record.session
    before = frozenset({session.state})
    match fate:
        case None:
            return
        case Foretell(end):
            core.store.apply(lives.Foretell(session.id, session.revision, end, now))
        case End(because):
            end_session(core, SYSTEM, session.id, because)
        case Finish():
            core.store.apply(MoveSession(session.id, before, SessionState.ENDED, now))
        case Fail() | Shelve():
            _fail(core, record, fate, now)
    core.changed.set()


def _fail(core: Core, record: SessionRecord, fate: Fail | Shelve, now: datetime) -> None:
    session, allocation = record.session, record.allocation
    fault = Fault(fate.reason, fate.message)
    shelved = isinstance(fate, Shelve)
    to = SessionState.SUSPENDED if shelved else SessionState.FAILED
    changes: list[Change] = [MoveSession(session.id, frozenset({session.state}), to, now, fault)]
    if not shelved:
        changes.append(LetGoSnapshots(session.id))
    if allocation is not None and allocation.state in OPEN:
        changes.append(MoveAllocation(allocation.id, OPEN, AllocationState.STOPPING, now, fault))
    action = "session.shelve" if shelved else "session.fail"
    core.store.apply(*changes, audit.done(core, SYSTEM, action, session.id, {"reason": fault.reason.value}))
    stop_allocation(core, allocation)
