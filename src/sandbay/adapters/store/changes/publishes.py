"""Publishes: begun, and moved on one at a time for each image."""

from sqlalchemy import Connection, bindparam, insert, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_taken, refuse_unless, replace_next, value_there
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import publishes
from sandbay.domain.publish import PUBLISH_MOVES, UNDER_WAY
from sandbay.ports.changes import AddPublish, ChangePublish

_KEY_USED = select(publishes.c.id).where(publishes.c.idempotency_key == bindparam("key"))
_OTHER_UNDER_WAY = select(publishes.c.id).where(
    publishes.c.image == bindparam("image"),
    publishes.c.id != bindparam("id"),
    publishes.c.phase.in_(sorted(UNDER_WAY)),
)
_PHASE = select(publishes.c.phase).where(publishes.c.id == bindparam("key"))
_REVISION = select(publishes.c.revision).where(publishes.c.id == bindparam("key"))
_MOVING = (
    "phase",
    "attempt",
    "inputs",
    "release",
    "built",
    "cancelled_by",
    "fault",
    "moved_at",
    "ended_at",
    "revision",
)
_CHANGE = (
    update(publishes).where(publishes.c.id == bindparam("key")).values({name: bindparam(name) for name in _MOVING})
)


def _add_publish(connection: Connection, change: AddPublish) -> None:
    if change.idempotency_key is not None:
        refuse_taken(connection, _KEY_USED, {"key": change.idempotency_key}, change)
    used = {"idempotency_key": change.idempotency_key, "body_hash": change.body_hash}
    connection.execute(insert(publishes).inline(), {**values_of(change.publish), **used})


def _change_publish(connection: Connection, change: ChangePublish) -> None:
    publish = change.publish
    if publish.phase in UNDER_WAY:
        refuse_taken(connection, _OTHER_UNDER_WAY, {"image": publish.image, "id": publish.id}, change)
    phase = value_there(connection, _PHASE, {"key": publish.id}, change)
    refuse_unless(publish.phase is phase or publish.phase in PUBLISH_MOVES[phase], phase, change)
    values = values_of(publish)
    moving = {"key": publish.id, **{name: values[name] for name in _MOVING}}
    replace_next(connection, _REVISION, _CHANGE, moving, change)


WRITES: Writes = {AddPublish: _add_publish, ChangePublish: _change_publish}
