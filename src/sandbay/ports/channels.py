"""Channels in the store: what they pointed at before, and promotions that wait for nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sandbay.domain.catalog import ChannelMove
from sandbay.domain.ids import ImageId, PromotionId
from sandbay.domain.promotion import Promotion, PromotionOutcome
from sandbay.domain.release import Fault
from sandbay.ports.changes import Change
from sandbay.ports.records import FIRST_PAGE, Page
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


@dataclass(frozen=True, slots=True)
class PromotionOf(Query[Promotion | None]):
    """By id."""

    id: PromotionId


@dataclass(frozen=True, slots=True)
class Promotions(Query[Sequence[Promotion]]):
    """Of one image, newest first."""

    image: ImageId
    page: Page = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class WaitingPromotions(Query[Sequence[Promotion]]):
    """All that have no outcome yet, oldest first."""


@dataclass(frozen=True, slots=True)
class AddPromotion(Change):
    """Begin it. While it waits its release is required on every node that can run it (`Needs`).

    Relies on the channel having no other that waits (`TAKEN`, current: that promotion), on the release being there,
    and on the channel's revision being `expected` (0: there is no channel).
    """

    promotion: Promotion


@dataclass(frozen=True, slots=True)
class EndPromotion(Change):
    """Give it its outcome. Relies on its having none (`STALE`, current: the outcome)."""

    promotion: PromotionId
    outcome: PromotionOutcome
    at: datetime
    by: str
    fault: Fault | None = None
