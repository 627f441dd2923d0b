"""Step 5, a node's half of preparing. What is wanted × what is held × free slots → events to apply.

The events go through `domain.readiness.advance`; the agent does what the new state asks for. Reaching the
wanted set is level-triggered: called again with the same input, it says the same.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from sandbay.domain.readiness import Readiness, ReadinessEvent, ReadinessState
from sandbay.domain.release import ContentKey
from sandbay.domain.want import WantedSet

_BUSY = frozenset({ReadinessState.PULLING, ReadinessState.VERIFYING})

Moves = tuple[tuple[ContentKey, ReadinessEvent], ...]


def prepare(
    wanted: WantedSet,
    held: Mapping[ContentKey, Readiness],
    slots: int,
    now: datetime,
    waiting: Collection[ContentKey] = (),
) -> Moves:
    """Events, in the order in which they are to be applied.

    `slots` is how many prepares may run at once. What is `waiting` for room is queued and gets none.
    """
    reasons = wanted.reasons()
    moves = [(key, event) for key in reasons if (event := _towards(held.get(key, Readiness()), now)) is not None]
    moves += [(key, ReadinessEvent.UNWANTED) for key, it in held.items() if key not in reasons and _lingers(it)]
    free = slots - sum(it.state in _BUSY for it in held.values())
    queued = [key for key in reasons if key not in waiting and _will_queue(held.get(key, Readiness()), now)]
    return (*moves, *((key, ReadinessEvent.SLOT) for key in queued[: max(free, 0)]))


def _towards(it: Readiness, now: datetime) -> ReadinessEvent | None:
    if it.state is ReadinessState.FAILED and it.wanted:
        return ReadinessEvent.RETRY if _due(it, now) else None
    return None if it.wanted else ReadinessEvent.WANTED


def _lingers(it: Readiness) -> bool:
    """Taken for wanted, or a failure that nobody waits for any more."""
    return it.wanted or it.state is ReadinessState.FAILED


def _will_queue(it: Readiness, now: datetime) -> bool:
    """Whether the moves above leave it queued."""
    if it.state is ReadinessState.FAILED:
        return it.wanted and _due(it, now)
    return it.state in (ReadinessState.QUEUED, ReadinessState.ABSENT)


def _due(it: Readiness, now: datetime) -> bool:
    return it.retry_at is not None and it.retry_at <= now
