"""Channels, and promotions that wait for nodes."""

from sqlalchemy import Connection, bindparam, insert, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_taken, refuse_unless, value_there
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import channel_history, channels, promotions, release_states, releases
from sandbay.domain.release import ReleaseState
from sandbay.ports.changes import MoveChannel
from sandbay.ports.channels import AddPromotion, EndPromotion

_STATE_OF_NUMBER = (
    select(release_states.c.state)
    .join(releases, releases.c.id == release_states.c.release)
    .where(releases.c.image == bindparam("image"), releases.c.number == bindparam("number"))
)
_this_channel = (channels.c.image == bindparam("of")) & (channels.c.name == bindparam("called"))
_CHANNEL = select(channels.c.revision, channels.c.number).where(_this_channel)
_UPDATE_CHANNEL = update(channels).where(_this_channel).values(number=bindparam("to"), revision=bindparam("next"))


def _move_channel(connection: Connection, change: MoveChannel) -> None:
    """The release is looked at first: what it is not now, another revision would not make it."""
    state = value_there(connection, _STATE_OF_NUMBER, {"image": change.image, "number": change.number}, change)
    refuse_unless(state is ReleaseState.ACTIVE, state, change)
    key = {"of": change.image, "called": change.channel}
    there = connection.execute(_CHANNEL, key).first()
    revision, before = (0, None) if there is None else there
    refuse_unless(change.expected in (None, revision), revision, change)
    following = revision + 1
    if there is None:
        row = {"image": change.image, "name": change.channel, "number": change.number, "revision": following}
        connection.execute(insert(channels), row)
    else:
        connection.execute(_UPDATE_CHANNEL, {**key, "to": change.number, "next": following})
    history = {
        "image": change.image,
        "channel": change.channel,
        "revision": following,
        "before": before,
        "number": change.number,
        "at": change.at,
        "principal": change.principal,
        "why": change.why,
    }
    connection.execute(insert(channel_history), history)


_WAITING = select(promotions.c.id).where(
    promotions.c.image == bindparam("of"),
    promotions.c.channel == bindparam("called"),
    promotions.c.outcome.is_(None),
)
_OUTCOME = select(promotions.c.outcome).where(promotions.c.id == bindparam("key"))
_END = (
    update(promotions)
    .where(promotions.c.id == bindparam("key"))
    .values({name: bindparam(f"its_{name}") for name in ("outcome", "fault", "ended_at", "ended_by")})
)


def _add_promotion(connection: Connection, change: AddPromotion) -> None:
    it = change.promotion
    key = {"of": it.image, "called": it.channel}
    refuse_taken(connection, _WAITING, key, change)
    value_there(connection, _STATE_OF_NUMBER, {"image": it.image, "number": it.number}, change)
    there = connection.execute(_CHANNEL, key).first()
    revision = 0 if there is None else there[0]
    refuse_unless(it.expected == revision, revision, change)
    connection.execute(insert(promotions), values_of(it))


def _end_promotion(connection: Connection, change: EndPromotion) -> None:
    key = {"key": change.promotion}
    outcome = value_there(connection, _OUTCOME, key, change)
    refuse_unless(outcome is None, outcome, change)
    its = {"outcome": change.outcome, "fault": change.fault, "ended_at": change.at, "ended_by": change.by}
    connection.execute(_END, {**key, **{f"its_{name}": value for name, value in its.items()}})


WRITES: Writes = {AddPromotion: _add_promotion, EndPromotion: _end_promotion, MoveChannel: _move_channel}
