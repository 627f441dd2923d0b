"""Admission, reservation, and the moves of Sessions and allocations."""

from sqlalchemy import Connection, Insert, bindparam, func, insert, null, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import move, refuse_taken, refuse_unless, value_there
from sandbay.adapters.store.columns import UtcTime
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
from sandbay.domain.session import FINAL
from sandbay.domain.template import FrozenTemplate
from sandbay.ports.changes import AdmitSession, Conflict, ConflictKind, MoveAllocation, MoveSession, Reserve

_KEY_USED = select(idempotency_keys.c.session).where(
    idempotency_keys.c.project == bindparam("project"), idempotency_keys.c.key == bindparam("key")
)
_ADD_SESSION = insert(sessions).inline()
_TEMPLATE_THERE = select(frozen_templates.c.digest).where(frozen_templates.c.digest == bindparam("digest"))


def _add_event() -> Insert:
    """What the Session is now, written down as an event."""
    now = select(
        sessions.c.id,
        sessions.c.revision,
        bindparam("at", type_=UtcTime),
        sessions.c.state,
        sessions.c.waiting_for,
        sessions.c.fault,
    ).where(sessions.c.id == bindparam("key"))
    return insert(session_events).from_select([column.name for column in session_events.c], now)


_ADD_EVENT = _add_event()


def _admit_session(connection: Connection, change: AdmitSession) -> None:
    session, frozen = change.session, change.frozen
    if session.frozen_digest != frozen.document_digest:
        raise ValueError(f"Session {session.id} does not name the frozen release that it is admitted on")
    if session.template_digest != (change.template and change.template.document_digest):
        raise ValueError(f"Session {session.id} does not name the frozen Template that it is prepared with")
    use = {"project": session.project, "key": change.idempotency_key}
    if change.idempotency_key is not None:
        refuse_taken(connection, _KEY_USED, use, change)
    generation = connection.execute(CURRENT_GENERATION).scalar_one()
    refuse_unless(frozen.generation == generation, generation, change)
    row = {
        "id": session.frozen,
        "digest": session.frozen_digest,
        "document": frozen.document.decode(),
        "content_key": frozen.content_key,
    }
    connection.execute(insert(frozen_releases), row)
    _keep_template(connection, change.template)
    connection.execute(_ADD_SESSION, values_of(session))
    connection.execute(_ADD_EVENT, {"key": session.id, "at": session.created_at})
    if change.idempotency_key is not None:
        used = {**use, "body_hash": change.body_hash, "session": session.id}
        connection.execute(insert(idempotency_keys), used)


def _keep_template(connection: Connection, template: FrozenTemplate | None) -> None:
    """Once, however many Sessions are prepared with it."""
    if template is None:
        return
    digest = {"digest": template.document_digest}
    if connection.execute(_TEMPLATE_THERE, digest).first() is None:
        connection.execute(insert(frozen_templates), {**digest, "document": template.document.decode()})


_OPEN_OF_SESSION = select(allocations.c.id).where(allocations.c.session == bindparam("session"), is_open)
_FROZEN_KEY = select(frozen_releases.c.content_key).where(frozen_releases.c.id == bindparam("frozen"))
_HELD = (
    select(readiness.c.state, pins.c.node)
    .select_from(readiness)
    .outerjoin(pins, (pins.c.node == readiness.c.node) & (pins.c.content_key == readiness.c.content_key))
    .where(readiness.c.node == bindparam("node"), readiness.c.content_key == bindparam("key"))
)
_OPEN_ON_NODE = select(func.count()).select_from(allocations).where(allocations.c.node == bindparam("node"), is_open)
_NEXT_ORDINAL = select(func.coalesce(func.max(allocations.c.ordinal), 0) + 1).where(
    allocations.c.session == bindparam("session")
)


def _reserve(connection: Connection, change: Reserve) -> None:
    allocation = change.allocation
    of, on = {"session": allocation.session}, {"node": allocation.node, "key": change.key}
    frozen_key = value_there(connection, _FROZEN_KEY, {"frozen": allocation.frozen}, change)
    if frozen_key != change.key:
        raise ValueError(f"allocation {allocation.id} is not for the content of its frozen release")
    refuse_taken(connection, _OPEN_OF_SESSION, of, change)
    state, pinned = connection.execute(_HELD, on).first() or (ReadinessState.ABSENT, None)
    refuse_unless(state is ReadinessState.READY, state, change)
    refuse_unless(pinned is not None, "unpinned", change)
    active = connection.execute(_OPEN_ON_NODE, on).scalar_one()
    if active >= change.slots:
        raise Conflict(change, ConflictKind.FULL, active)
    ordinal = connection.execute(_NEXT_ORDINAL, of).scalar_one()
    row = {**values_of(allocation), "ordinal": ordinal, "opened_at": change.at, "moved_at": change.at}
    connection.execute(insert(allocations), row)


_SESSION_STATE = select(sessions.c.state).where(sessions.c.id == bindparam("key"))
_MOVE_SESSION = (
    update(sessions)
    .where(sessions.c.id == bindparam("key"))
    .values(
        state=bindparam("to"),
        fault=func.coalesce(bindparam("fault", type_=sessions.c.fault.type), sessions.c.fault),
        waiting_for=null(),
        wait_until=null(),
        ended_at=bindparam("ended_at", type_=UtcTime),
        revision=sessions.c.revision + 1,
    )
)


def _move_session(connection: Connection, change: MoveSession) -> None:
    ended_at = change.at if change.to in FINAL else None
    values = {"key": change.session, "to": change.to, "fault": change.fault, "ended_at": ended_at}
    move(connection, _SESSION_STATE, _MOVE_SESSION, values, change)
    connection.execute(_ADD_EVENT, {"key": change.session, "at": change.at})


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
    MoveAllocation: _move_allocation,
    MoveSession: _move_session,
    Reserve: _reserve,
}
