"""Publishes, newest first, and what an idempotency key was used for."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.tables import publishes
from sandbay.domain.publish import Publish
from sandbay.ports.records import Started
from sandbay.ports.store import Publishes, PublishOf, StartedWith

_ALL = select(*columns_of(Publish, publishes))
_ONE = _ALL.where(publishes.c.id == bindparam("id"))
_STARTED = select(*columns_of(Started, publishes)).where(publishes.c.idempotency_key == bindparam("key"))


def _publish_of(connection: Connection, query: PublishOf) -> Publish | None:
    row = connection.execute(_ONE, {"id": query.id}).first()
    return None if row is None else noun(Publish, row)


def _publishes(connection: Connection, query: Publishes) -> Sequence[Publish]:
    statement = _ALL.order_by(publishes.c.seq.desc()).limit(query.page.limit)
    if query.image is not None:
        statement = statement.where(publishes.c.image == query.image)
    if query.phases is not None:
        statement = statement.where(publishes.c.phase.in_(sorted(query.phases)))
    if query.page.after is not None:
        seen = select(publishes.c.seq).where(publishes.c.id == query.page.after).scalar_subquery()
        statement = statement.where(publishes.c.seq < seen)
    return tuple(noun(Publish, row) for row in connection.execute(statement))


def _started_with(connection: Connection, query: StartedWith) -> Started | None:
    row = connection.execute(_STARTED, {"key": query.key}).first()
    return None if row is None else noun(Started, row)


ANSWERS: Answers = {Publishes: _publishes, PublishOf: _publish_of, StartedWith: _started_with}
