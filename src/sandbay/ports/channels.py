"""Channels in the store: what they pointed at before."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.domain.catalog import ChannelMove
from sandbay.domain.ids import ImageId
from sandbay.ports.store import Query


@dataclass(frozen=True, slots=True)
class ChannelMoves(Query[Sequence[ChannelMove]]):
    """Where a channel has pointed, newest first: `limit` moves, those older than the revision `before` when given."""

    image: ImageId
    channel: str
    limit: int = 100
    before: int | None = None


@dataclass(frozen=True, slots=True)
class PreviousRelease(Query[int | None]):
    """The number of the release that a channel pointed at before the one it points at; None when there was none."""

    image: ImageId
    channel: str
