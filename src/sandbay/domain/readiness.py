"""Readiness: what one node can say of one variant. A pin is history, readiness is present proof.

    absent ─wanted▶ queued ─slot▶ pulling ─fetched▶ verifying ─proved▶ ready ─drop▶ evicting ─removed▶ absent
    queued, pulling, verifying ─broke▶ failed ─retry▶ queued
    queued, pulling, failed ─unwanted▶ absent      verifying ─unwanted▶ finishes, then `ready` and unwanted
    ready ─lost▶ failed(content_lost)              ready ─drop, still wanted▶ stays ready
    evicting ─wanted▶ finishes, then queued        evicting ─broke▶ failed

The node's agent sends wanted, unwanted, slot, fetched, proved, broke, retry, removed, lost; Core sends
`drop` (the grant that ends a pin). A report or a grant about another attempt changes nothing. Every cell
of the table is decided here; what is not in the table changes nothing and says so.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sandbay.domain.reasons import Group, Reason
from sandbay.domain.release import Fault


class ReadinessState(StrEnum):
    """Only READY may run anything."""

    ABSENT = "absent"
    QUEUED = "queued"
    PULLING = "pulling"
    VERIFYING = "verifying"
    READY = "ready"
    EVICTING = "evicting"
    FAILED = "failed"


class ReadinessEvent(StrEnum):
    """What can happen to it."""

    WANTED = "wanted"
    UNWANTED = "unwanted"
    SLOT = "slot"
    FETCHED = "fetched"
    PROVED = "proved"
    BROKE = "broke"
    RETRY = "retry"
    DROP = "drop"
    REMOVED = "removed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Readiness:
    """One node, one content key. `attempt` counts prepares; a report speaks of exactly one."""

    state: ReadinessState = ReadinessState.ABSENT
    wanted: bool = False
    attempt: int = 0
    fault: Fault | None = None
    retry_at: datetime | None = None
    bytes_done: int = 0
    bytes_total: int = 0


@dataclass(frozen=True, slots=True)
class Unmoved:
    """The event does not apply; `why` is for the log."""

    why: str


_S, _E = ReadinessState, ReadinessEvent

MOVES: dict[tuple[ReadinessState, ReadinessEvent], ReadinessState] = {
    (_S.ABSENT, _E.WANTED): _S.QUEUED,
    (_S.QUEUED, _E.WANTED): _S.QUEUED,
    (_S.QUEUED, _E.UNWANTED): _S.ABSENT,
    (_S.QUEUED, _E.SLOT): _S.PULLING,
    (_S.QUEUED, _E.BROKE): _S.FAILED,
    (_S.PULLING, _E.WANTED): _S.PULLING,
    (_S.PULLING, _E.UNWANTED): _S.ABSENT,
    (_S.PULLING, _E.FETCHED): _S.VERIFYING,
    (_S.PULLING, _E.BROKE): _S.FAILED,
    (_S.VERIFYING, _E.WANTED): _S.VERIFYING,
    (_S.VERIFYING, _E.UNWANTED): _S.VERIFYING,
    (_S.VERIFYING, _E.PROVED): _S.READY,
    (_S.VERIFYING, _E.BROKE): _S.FAILED,
    (_S.READY, _E.WANTED): _S.READY,
    (_S.READY, _E.UNWANTED): _S.READY,
    (_S.READY, _E.DROP): _S.EVICTING,
    (_S.READY, _E.LOST): _S.FAILED,
    (_S.EVICTING, _E.WANTED): _S.EVICTING,
    (_S.EVICTING, _E.UNWANTED): _S.EVICTING,
    (_S.EVICTING, _E.REMOVED): _S.ABSENT,
    (_S.EVICTING, _E.BROKE): _S.FAILED,
    (_S.FAILED, _E.WANTED): _S.FAILED,
    (_S.FAILED, _E.UNWANTED): _S.ABSENT,
    (_S.FAILED, _E.RETRY): _S.QUEUED,
}

_OF_ONE_ATTEMPT = {_E.FETCHED, _E.PROVED, _E.BROKE, _E.REMOVED, _E.LOST, _E.DROP}


def advance(
    now: Readiness, event: ReadinessEvent, *, attempt: int, fault: Fault | None = None, retry_at: datetime | None = None
) -> Readiness | Unmoved:
    """The next readiness, or why the event cannot apply. `attempt` is the one the event speaks of."""
    if event in _OF_ONE_ATTEMPT and attempt != now.attempt:
        return Unmoved(f"about attempt {attempt}, but attempt {now.attempt} is current")
    state = MOVES.get((now.state, event))
    if state is None:
        return Unmoved(f"{event} means nothing while {now.state}")
    wanted = {_E.WANTED: True, _E.UNWANTED: False}.get(event, now.wanted)
    if event is _E.DROP and now.wanted:
        return Unmoved("it is wanted again")
    if event is _E.RETRY and not now.wanted:
        return Unmoved("it is not wanted")
    if event is _E.REMOVED and now.wanted:
        state = _S.QUEUED
    moved = replace(now, state=state, wanted=wanted)
    if state is now.state:
        return moved
    begins = state is _S.QUEUED
    failed = state is _S.FAILED
    return replace(
        moved,
        attempt=now.attempt + begins,
        fault=fault if failed else None,
        retry_at=retry_at if failed else None,
        bytes_done=0 if begins or state is _S.ABSENT else now.bytes_done,
    )


def may_follow(stored: Readiness, reported: Readiness) -> bool:
    """Whether Core takes a node's report: about the current attempt, or beginning the very next one."""
    return reported.attempt == stored.attempt or (
        reported.attempt == stored.attempt + 1 and reported.state in (_S.QUEUED, _S.PULLING)
    )


_RETRY_AFTER = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 30))


def retry_after(reason: Reason, attempt: int) -> timedelta | None:
    """How long to wait before trying again; None when only an administrator or new bytes can help."""
    if reason.about.group is Group.CONTENT and reason is not Reason.CONTENT_LOST:
        return None
    return _RETRY_AFTER[min(max(attempt, 1), len(_RETRY_AFTER)) - 1]
