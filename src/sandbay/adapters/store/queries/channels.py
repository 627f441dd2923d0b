"""Where channels have pointed."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.tables import channel_history
from sandbay.domain.catalog import ChannelMove
from sandbay.ports.channels import ChannelMoves, PreviousRelease

_of_this = (channel_history.c.image == bindparam("image")) & (channel_history.c.channel == bindparam("channel"))
_newest_first = channel_history.c.revision.desc()
_MOVES = select(*columns_of(ChannelMove, channel_history)).where(_of_this).order_by(_newest_first)
_OLDER = _MOVES.where(channel_history.c.revision < bindparam("before"))
_PREVIOUS = (
    select(channel_history.c.before)
    .where(_of_this, channel_history.c.before != channel_history.c.number)
    .order_by(_newest_first)
    .limit(1)
)


def _channel_moves(connection: Connection, query: ChannelMoves) -> Sequence[ChannelMove]:
    statement, older = (_MOVES, {}) if query.before is None else (_OLDER, {"before": query.before})
    values = {"image": query.image, "channel": query.channel, **older}
    return tuple(noun(ChannelMove, row) for row in connection.execute(statement.limit(query.limit), values))


def _previous_release(connection: Connection, query: PreviousRelease) -> int | None:
    """A move to where it pointed already has changed nothing; one that made the channel has no `before`."""
    number: int | None = connection.execute(_PREVIOUS, {"image": query.image, "channel": query.channel}).scalar()
    return number


ANSWERS: Answers = {ChannelMoves: _channel_moves, PreviousRelease: _previous_release}
