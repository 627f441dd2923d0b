"""Gated promotions: a channel that moves when enough nodes are ready for the release, and not before.

waiting ─enough nodes are ready▶ settled: the channel has moved, in the same transaction
waiting ─its time is over, or nothing can become of it▶ failed(reason)      waiting ─somebody ends it▶ aborted
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sandbay.domain.ids import ImageId, PromotionId
from sandbay.domain.release import Fault


class PromotionOutcome(StrEnum):
    """How it ended."""

    SETTLED = "settled"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Promotion:
    """One promotion of one channel; without an outcome it waits.

    nodes: on how many nodes the release has to be ready; None: on every node that can run it.
    before, expected: where the channel pointed and which revision it had when this began (None and 0: it is new).
    force: whether it moves although Templates lose a tool by it.
    """

    id: PromotionId
    image: ImageId
    channel: str
    number: int
    before: int | None
    expected: int
    nodes: int | None
    deadline: datetime
    created_at: datetime
    principal: str
    why: str = ""
    force: bool = False
    outcome: PromotionOutcome | None = None
    fault: Fault | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None
