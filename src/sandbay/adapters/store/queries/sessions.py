"""Sessions with what they are frozen to, and what an idempotency key was used for."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import SESSION_RECORDS, columns_of, noun, session_record
from sandbay.adapters.store.tables import allocations, idempotency_keys, is_open, session_events, sessions
from sandbay.domain.events import SessionEvent
from sandbay.ports.records import Created, SessionRecord
from sandbay.ports.store import CreatedWith, OpenAllocations, SessionEvents, SessionOf, Sessions

_ONE = SESSION_RECORDS.where(sessions.c.id == bindparam("id"))
_OPEN = SESSION_RECORDS.where(allocations.c.node == bindparam("node"), is_open).order_by(sessions.c.seq)
_NEWEST_FIRST = SESSION_RECORDS.order_by(sessions.c.seq.desc())
_EVENTS = (
    select(*columns_of(SessionEvent, session_events))
    .where(session_events.c.session == bindparam("session"), session_events.c.number > bindparam("after"))
    .order_by(session_events.c.number)
)
_CREATED = select(*columns_of(Created, idempotency_keys)).where(
    idempotency_keys.c.project == bindparam("project"), idempotency_keys.c.key == bindparam("key")
)


def _session_of(connection: Connection, query: SessionOf) -> SessionRecord | None:
    row = connection.execute(_ONE, {"id": query.id}).first()
    found = None if row is None else session_record(row)
    hidden = found is not None and query.project not in (None, found.session.project)
    return None if hidden else found


def _sessions(connection: Connection, query: Sessions) -> Sequence[SessionRecord]:
    statement = _NEWEST_FIRST.limit(query.page.limit)
    if query.project is not None:
        statement = statement.where(sessions.c.project == query.project)
    if query.states is not None:
        statement = statement.where(sessions.c.state.in_(sorted(query.states)))
    if query.page.after is not None:
        seen = select(sessions.c.seq).where(sessions.c.id == query.page.after).scalar_subquery()
        statement = statement.where(sessions.c.seq < seen)
    return tuple(session_record(row) for row in connection.execute(statement))


def _session_events(connection: Connection, query: SessionEvents) -> Sequence[SessionEvent]:
    rows = connection.execute(_EVENTS, {"session": query.session, "after": query.after})
    return tuple(noun(SessionEvent, row) for row in rows)


def _created_with(connection: Connection, query: CreatedWith) -> Created | None:
    row = connection.execute(_CREATED, {"project": query.project, "key": query.key}).first()
    return None if row is None else noun(Created, row)


def _open_allocations(connection: Connection, query: OpenAllocations) -> Sequence[SessionRecord]:
    return tuple(session_record(row) for row in connection.execute(_OPEN, {"node": query.node}))


ANSWERS: Answers = {
    CreatedWith: _created_with,
    OpenAllocations: _open_allocations,
    SessionEvents: _session_events,
    SessionOf: _session_of,
    Sessions: _sessions,
}
