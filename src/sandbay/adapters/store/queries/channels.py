"""Where channels have pointed, and promotions."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.tables import channel_history, promotions
from sandbay.domain.catalog import ChannelMove
from sandbay.domain.promotion import Promotion
from sandbay.ports.channels import ChannelMoves, PreviousRelease, PromotionOf, Promotions, WaitingPromotions

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


_PROMOTIONS = select(*columns_of(Promotion, promotions))
_PROMOTION = _PROMOTIONS.where(promotions.c.id == bindparam("id"))
_WAITING = _PROMOTIONS.where(promotions.c.outcome.is_(None)).order_by(promotions.c.seq)
_OF_IMAGE = _PROMOTIONS.where(promotions.c.image == bindparam("image")).order_by(promotions.c.seq.desc())
_SEEN = select(promotions.c.seq).where(promotions.c.id == bindparam("after")).scalar_subquery()


def _promotion_of(connection: Connection, query: PromotionOf) -> Promotion | None:
    row = connection.execute(_PROMOTION, {"id": query.id}).first()
    return None if row is None else noun(Promotion, row)


def _promotions(connection: Connection, query: Promotions) -> Sequence[Promotion]:
    statement, values = _OF_IMAGE.limit(query.page.limit), {"image": str(query.image)}
    if query.page.after is not None:
        statement, values = statement.where(promotions.c.seq < _SEEN), {**values, "after": query.page.after}
    return tuple(noun(Promotion, row) for row in connection.execute(statement, values))


def _waiting_promotions(connection: Connection, _: WaitingPromotions) -> Sequence[Promotion]:
    return tuple(noun(Promotion, row) for row in connection.execute(_WAITING))


ANSWERS: Answers = {
    ChannelMoves: _channel_moves,
    PreviousRelease: _previous_release,
    PromotionOf: _promotion_of,
    Promotions: _promotions,
    WaitingPromotions: _waiting_promotions,
}
