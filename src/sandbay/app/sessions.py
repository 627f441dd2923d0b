"""Sessions after their admission: look, wait, end, run commands, reach files."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.secrets import secret_variables
from sandbay.domain.allocation import Allocation, AllocationState, Booted
from sandbay.domain.command import Command
from sandbay.domain.errors import RefusedError
from sandbay.domain.events import SessionEvent
from sandbay.domain.ids import ProjectId, SessionId
from sandbay.domain.life import EndCause
from sandbay.domain.readiness import Readiness
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState
from sandbay.domain.setup import SetupProgress
from sandbay.ports.changes import Change, Conflict, ConflictKind, MoveAllocation, MoveSession
from sandbay.ports.lives import UseSession
from sandbay.ports.provider import Emit, Exit, Files, OnStart
from sandbay.ports.records import Page, SessionRecord
from sandbay.ports.snapshots import LetGoSnapshots
from sandbay.ports.store import SessionEvents, SessionOf, Sessions

OPEN = frozenset({AllocationState.RESERVED, AllocationState.STARTING, AllocationState.RUNNING})
_LIVE = frozenset(SessionState) - FINAL - {SessionState.ENDING}
_KEPT = frozenset({SessionState.SUSPENDING, SessionState.SUSPENDED, SessionState.RESUMING})
_TRIES = 5
_LOOK_SECONDS = 1.0
"""Another Core on the same database may move a Session, and nothing here is told."""


def find_session(core: Core, session: SessionId, project: ProjectId | None) -> SessionRecord:
    """One Session; what another project owns is `not_found`, exactly as what does not exist."""
    record = core.store.read(SessionOf(session, project))
    if record is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no Session {session}")
    return record


def session_events(core: Core, session: SessionId, after: int = 0) -> Sequence[SessionEvent]:
    """Which states it came to, in order; those after a number."""
    return core.store.read(SessionEvents(session, after))


def list_sessions(core: Core, project: ProjectId | None, page: Page) -> Sequence[SessionRecord]:
    """Newest first."""
    return core.store.read(Sessions(project, page=page))


def wait_while(
    core: Core,
    record: SessionRecord,
    states: frozenset[SessionState],
    seconds: float,
    gone: threading.Event | None = None,
    *,
    setup: bool = True,
) -> SessionRecord:
    """Return when the Session is in none of `states`, or as it is after `seconds`; without `setup`, when that begins.

    Whoever waits may go away: setting `gone` and then `core.changed` ends the wait.
    """
    deadline = core.clock.monotonic() + seconds
    while record.session.state in states:
        seen = core.changed.version
        record = find_session(core, record.session.id, record.session.project)
        left = deadline - core.clock.monotonic()
        enough = left <= 0 or (gone is not None and gone.is_set()) or (not setup and record.session.id in core.setups)
        if record.session.state not in states or enough:
            break
        core.changed.wait(seen, min(left, _LOOK_SECONDS))
    return record


def progress_of(core: Core, record: SessionRecord) -> Readiness | SetupProgress | None:
    """The best prepare under way of what a waiting Session waits for; of a starting one, how far its setup is."""
    if record.session.state is SessionState.STARTING:
        return core.setups.get(record.session.id)
    if record.session.state is not SessionState.WAITING:
        return None
    rows = [it for (_, key), it in list(core.progress.items()) if key == record.frozen.content_key]
    return max(rows, key=lambda it: it.bytes_done, default=None)


def end_session(core: Core, actor: Actor, session: SessionId, because: EndCause = EndCause.ASKED) -> SessionRecord:
    """Begin to end it, whatever it is doing. Repeating it, or ending what has ended, is fine.

    The answer is what this call wrote, however quick the node is.
    """
    for _ in range(_TRIES):
        record = find_session(core, session, actor.project)
        if record.session.state not in _LIVE:
            return record
        changes = _ending(core, record, because)
        told = audit.done(core, actor, "session.delete", session, {"because": because.value})
        try:
            core.store.apply(*changes, told)
        except Conflict as conflict:
            if conflict.kind is not ConflictKind.STALE:
                raise
            continue
        written = find_session(core, session, actor.project) if _is_free(record) else _stopping(record, because)
        core.changed.set()
        stop_allocation(core, record.allocation)
        return written
    raise RefusedError(Reason.REVISION_STALE, "the Session keeps changing; try again")


def _ending(core: Core, record: SessionRecord, because: EndCause) -> list[Change]:
    """Without an open allocation there is nothing to wait for: it ends at once."""
    now = core.clock.now()
    state = record.session.state
    before = frozenset({state})
    moves: list[Change] = [MoveSession(record.session.id, before, SessionState.ENDING, now, because=because)]
    if state in _KEPT:
        moves.append(LetGoSnapshots(record.session.id))
    if record.allocation is None or _is_free(record):
        return [*moves, MoveSession(record.session.id, frozenset({SessionState.ENDING}), SessionState.ENDED, now)]
    return [*moves, MoveAllocation(record.allocation.id, OPEN, AllocationState.STOPPING, now)]


def _is_free(record: SessionRecord) -> bool:
    return record.allocation is None or record.allocation.state is AllocationState.CLOSED


def _stopping(record: SessionRecord, because: EndCause) -> SessionRecord:
    """The record as `_ending` leaves it while an allocation is open."""
    session = record.session
    ending = replace(
        session,
        state=SessionState.ENDING,
        waiting_for=None,
        wait_until=None,
        foretold=None,
        ended_because=because,
        revision=session.revision + 1,
    )
    allocation = record.allocation and replace(record.allocation, state=AllocationState.STOPPING)
    return replace(record, session=ending, allocation=allocation)


def stop_allocation(core: Core, allocation: Allocation | None) -> None:
    """Tell the node; when it is away, the reconciler tells it again."""
    if allocation is None:
        return
    try:
        core.link.reach(allocation.node).stop_allocation(allocation.id)
    except RefusedError as error:
        if error.refusal.reason is not Reason.NO_NODE_ONLINE:
            raise


def running_allocation(record: SessionRecord) -> Allocation:
    """The open allocation of a running Session; `not_running` or `already_ended` otherwise."""
    session = record.session
    if session.state in FINAL:
        details = {"status": session.state.value}
        raise RefusedError(Reason.ALREADY_ENDED, f"{session.id} has {session.state.value}", details=details)
    if session.state is not SessionState.RUNNING or record.allocation is None:
        details = {"status": session.state.value}
        raise RefusedError(Reason.NOT_RUNNING, f"{session.id} is {session.state.value}", details=details)
    return record.allocation


def run_command(
    core: Core,
    record: SessionRecord,
    command: Command,
    *,
    stdin: Iterable[bytes] = (),
    emit: Emit,
    cancel: threading.Event | None = None,
    on_start: OnStart | None = None,
) -> Exit:
    """Run to its end; output goes to `emit` as it comes."""
    allocation = running_allocation(record)
    node = core.link.reach(allocation.node)
    env = {**secret_variables(core, record.session), **command.env}
    with _in_use(core, record):
        command = replace(command, env=env)
        return node.exec(allocation.id, command, stdin=stdin, emit=emit, cancel=cancel, on_start=on_start)


def files_of(core: Core, record: SessionRecord) -> Files:
    """The files of a running Session."""
    allocation = running_allocation(record)
    with _in_use(core, record):
        return core.link.reach(allocation.node).files(allocation.id)


@contextmanager
def _in_use(core: Core, record: SessionRecord) -> Iterator[None]:
    """Whoever has foretold its end, on whichever Core, has to hear of it at once; else that has time."""
    if record.session.foretold is not None:
        core.store.apply(UseSession(record.session.id, core.clock.now()))
    with core.uses.during(record.session.id, core.clock):
        yield


def booted_of(core: Core, record: SessionRecord) -> Booted | None:
    """What the running thing says of itself, for the administrator; None when nothing runs or its node is away."""
    try:
        allocation = running_allocation(record)
        return core.link.reach(allocation.node).booted(allocation.id)
    except RefusedError:
        return None
