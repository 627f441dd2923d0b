"""Admission, reservation, and the moves of Sessions and allocations."""

from sqlalchemy import Boolean, Connection, bindparam, case, func, insert, null, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import move, refuse_unless, value_there
from sandbay.adapters.store.columns import UtcTime
from sandbay.adapters.store.prepared import Prepared
from sandbay.adapters.store.queries.fleet import CURRENT_GENERATION
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import (
    allocations,
    frozen_releases,
    frozen_templates,
    idempotency_keys,
    is_open,
    pins,
    readiness,
    session_events,
    sessions,
)
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.session import FINAL, SessionState
from sandbay.domain.template import FrozenTemplate
from sandbay.ports.changes import AdmitSession, Conflict, ConflictKind, MoveAllocation, MoveSession, Reserve
from sandbay.ports.lives import Foretell, UseSession

_KEY_USED = select(idempotency_keys.c.session).where(
    idempotency_keys.c.project == bindparam("project"), idempotency_keys.c.key == bindparam("key")
)
_BEFORE_ADMISSION = Prepared(select(CURRENT_GENERATION.scalar_subquery(), _KEY_USED.scalar_subquery()))
"""All that an admission relies on, in one look: a statement costs more than what it looks at."""

_ADD_FROZEN, _ADD_SESSION, _USE_KEY, _ADD_ALLOCATION = (
    Prepared(insert(table).inline()) for table in (frozen_releases, sessions, idempotency_keys, allocations)
)
_TEMPLATE_THERE = select(frozen_templates.c.digest).where(frozen_templates.c.digest == bindparam("digest"))


def _add_event() -> Prepared:
    """What the Session is now, written down as an event."""
    now = select(
        sessions.c.id,
        sessions.c.revision,
        bindparam("at", type_=UtcTime),
        sessions.c.state,
        sessions.c.waiting_for,
        sessions.c.fault,
        sessions.c.foretold,
        sessions.c.ended_because,
    ).where(sessions.c.id == bindparam("key"))
    return Prepared(insert(session_events).from_select([column.name for column in session_events.c], now))


_ADD_EVENT = _add_event()


def _admit_session(connection: Connection, change: AdmitSession) -> None:
    session, frozen = change.session, change.frozen
    if session.frozen_digest != frozen.document_digest:
        raise ValueError(f"Session {session.id} does not name the frozen release that it is admitted on")
    if session.template_digest != (change.template and change.template.document_digest):
        raise ValueError(f"Session {session.id} does not name the frozen Template that it is prepared with")
    use = {"project": session.project, "key": change.idempotency_key}
    generation, used_for = _BEFORE_ADMISSION.row(connection, use)
    if used_for is not None:
        raise Conflict(change, ConflictKind.TAKEN, used_for)
    refuse_unless(frozen.generation == generation, generation, change)
    row = {
        "id": session.frozen,
        "digest": session.frozen_digest,
        "document": frozen.document.decode(),
        "content_key": frozen.content_key,
    }
    _ADD_FROZEN(connection, row)
    _keep_template(connection, change.template)
    _ADD_SESSION(connection, values_of(session))
    _ADD_EVENT(connection, {"key": session.id, "at": session.created_at})
    if change.idempotency_key is not None:
        used = {**use, "body_hash": change.body_hash, "session": session.id}
        _USE_KEY(connection, used)


def _keep_template(connection: Connection, template: FrozenTemplate | None) -> None:
    """Once, however many Sessions are prepared with it."""
    if template is None:
        return
    digest = {"digest": template.document_digest}
    if connection.execute(_TEMPLATE_THERE, digest).first() is None:
        connection.execute(insert(frozen_templates), {**digest, "document": template.document.decode()})


_OPEN_OF_SESSION = select(allocations.c.id).where(allocations.c.session == bindparam("session"), is_open)
_FROZEN_KEY = select(frozen_releases.c.content_key).where(frozen_releases.c.id == bindparam("frozen"))
_STATE = select(readiness.c.state).where(
    readiness.c.node == bindparam("node"), readiness.c.content_key == bindparam("key")
)
_PINNED = select(pins.c.node).where(pins.c.node == bindparam("node"), pins.c.content_key == bindparam("key"))
_OPEN_ON_NODE = select(func.count()).select_from(allocations).where(allocations.c.node == bindparam("node"), is_open)
_NEXT_ORDINAL = select(func.coalesce(func.max(allocations.c.ordinal), 0) + 1).where(
    allocations.c.session == bindparam("session")
)
_RELIED_ON = (_FROZEN_KEY, _OPEN_OF_SESSION, _STATE, _PINNED, _OPEN_ON_NODE, _NEXT_ORDINAL)
_BEFORE_RESERVATION = Prepared(select(*(it.scalar_subquery() for it in _RELIED_ON)))
"""The same for a reservation."""


def _reserve(connection: Connection, change: Reserve) -> None:
    allocation = change.allocation
    of = {"frozen": allocation.frozen, "session": allocation.session, "node": allocation.node, "key": change.key}
    frozen_key, open_one, state, pinned, active, ordinal = _BEFORE_RESERVATION.row(connection, of)
    if frozen_key is None:
        raise Conflict(change, ConflictKind.MISSING)
    if frozen_key != change.key:
        raise ValueError(f"allocation {allocation.id} is not for the content of its frozen release")
    if open_one is not None:
        raise Conflict(change, ConflictKind.TAKEN, open_one)
    found = ReadinessState(state or ReadinessState.ABSENT)
    refuse_unless(found is ReadinessState.READY, found, change)
    refuse_unless(pinned is not None, "unpinned", change)
    if active >= change.slots:
        raise Conflict(change, ConflictKind.FULL, active)
    row = {**values_of(allocation), "ordinal": ordinal, "opened_at": change.at, "moved_at": change.at}
    _ADD_ALLOCATION(connection, row)


_OVER = FINAL | {SessionState.ENDING}
_SESSION_STATE = select(sessions.c.state).where(sessions.c.id == bindparam("key"))
_MOVE_SESSION = (
    update(sessions)
    .where(sessions.c.id == bindparam("key"))
    .values(
        state=bindparam("to"),
        fault=func.coalesce(
            bindparam("fault", type_=sessions.c.fault.type),
            case((bindparam("over", type_=Boolean), sessions.c.fault), else_=null()),
        ),
        waiting_for=null(),
        wait_until=null(),
        foretold=null(),
        moved_at=bindparam("at", type_=UtcTime),
        ended_because=func.coalesce(
            bindparam("because", type_=sessions.c.ended_because.type), sessions.c.ended_because
        ),
        ended_at=bindparam("ended_at", type_=UtcTime),
        revision=sessions.c.revision + 1,
    )
)


def _move_session(connection: Connection, change: MoveSession) -> None:
    ended_at = change.at if change.to in FINAL else None
    values = {
        "key": change.session,
        "to": change.to,
        "at": change.at,
        "ended_at": ended_at,
        "fault": change.fault,
        "over": change.to in _OVER,
        "because": change.because,
    }
    move(connection, _SESSION_STATE, _MOVE_SESSION, values, change)
    _ADD_EVENT(connection, {"key": change.session, "at": change.at})


_FORETELL = (
    update(sessions)
    .where(sessions.c.id == bindparam("key"))
    .values(foretold=bindparam("foretold"), revision=sessions.c.revision + 1)
)
_REVISION = select(sessions.c.revision).where(sessions.c.id == bindparam("key"))
_USE = (
    update(sessions)
    .where(sessions.c.id == bindparam("key"))
    .where(sessions.c.used_at.is_(None) | (sessions.c.used_at < bindparam("at", type_=UtcTime)))
    .values(used_at=bindparam("at", type_=UtcTime))
)


def _foretell(connection: Connection, change: Foretell) -> None:
    revision = value_there(connection, _REVISION, {"key": change.session}, change)
    refuse_unless(revision == change.revision, revision, change)
    connection.execute(_FORETELL, {"key": change.session, "foretold": change.end})
    _ADD_EVENT(connection, {"key": change.session, "at": change.at})


def _use(connection: Connection, change: UseSession) -> None:
    connection.execute(_USE, {"key": change.session, "at": change.at})


_ALLOCATION_STATE = select(allocations.c.state).where(allocations.c.id == bindparam("key"))
_MOVE_ALLOCATION = (
    update(allocations)
    .where(allocations.c.id == bindparam("key"))
    .values(
        state=bindparam("to"),
        fault=func.coalesce(bindparam("fault", type_=allocations.c.fault.type), allocations.c.fault),
        moved_at=bindparam("at"),
    )
)


def _move_allocation(connection: Connection, change: MoveAllocation) -> None:
    values = {"key": change.allocation, "to": change.to, "fault": change.fault, "at": change.at}
    move(connection, _ALLOCATION_STATE, _MOVE_ALLOCATION, values, change)


WRITES: Writes = {
    AdmitSession: _admit_session,
    Foretell: _foretell,
    MoveAllocation: _move_allocation,
    MoveSession: _move_session,
    Reserve: _reserve,
    UseSession: _use,
}
