"""What becomes of a Session as time goes by. No state is without somebody who moves it on, a limit and a way out.

    state      who moves it on            its limit                                    what happens then
    waiting    Core, when it can          `wait_until`; its own longest life           failed: wait_expired; ending
    starting   its node                   the time of a setup and `SLOW_START` more    failed: timed_out
    running    whoever uses it            its life; `LOST` without a word of its node  ending; failed: node_lost
    suspending its node                   `SLOW_SUSPEND`                               failed: timed_out
    suspended  whoever resumes it         how long snapshots are kept; its longest life ending
    resuming   its node                   the time of a setup and `SLOW_START` more    suspended: timed_out
    ending     its node                   `SLOW_END`                                   ended; what is left is stopped on
    ended, failed                         nobody: final

An end that nobody asked for is foretold first, so that whoever listens can save what is to be saved. Use takes back
what was foretold of an idle Session.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sandbay.domain.life import EndCause, Foretold, Life
from sandbay.domain.reasons import Reason
from sandbay.domain.session import SessionState

SLOW_START = timedelta(minutes=15)
SLOW_END = timedelta(minutes=10)
LOST = timedelta(hours=1)
SLOW_SUSPEND = timedelta(hours=1)
"""A node that is away meanwhile keeps the state; after that nobody waits for it any more."""

NOTICE = timedelta(minutes=1)
"""How long before its end a Session is told; a quarter of its time where that is shorter."""

NOTICE_OF_KEPT = timedelta(days=1)
"""The same of one that is suspended: nobody has a connection to it."""


class Owner(StrEnum):
    """Who moves a Session on from a state."""

    CORE = "core"
    NODE = "node"
    CALLER = "caller"
    NOBODY = "nobody"


OWNERS: Mapping[SessionState, Owner] = {
    SessionState.WAITING: Owner.CORE,
    SessionState.STARTING: Owner.NODE,
    SessionState.RUNNING: Owner.CALLER,
    SessionState.SUSPENDING: Owner.NODE,
    SessionState.SUSPENDED: Owner.CALLER,
    SessionState.RESUMING: Owner.NODE,
    SessionState.ENDING: Owner.NODE,
    SessionState.ENDED: Owner.NOBODY,
    SessionState.FAILED: Owner.NOBODY,
}


@dataclass(frozen=True, slots=True)
class Living:
    """A Session as time sees it.

    `since`: when it came to its state. `used_at`: the last use that is known of; None before the first. `busy`: a
    command or a transfer is under way. `away_since`: since when its node has not been heard of; None while it is.
    `setup`: how long its initialisation may take. `kept`: how long what is suspended is kept.
    """

    state: SessionState
    life: Life
    created_at: datetime
    since: datetime
    setup: timedelta
    used_at: datetime | None = None
    busy: bool = False
    away_since: datetime | None = None
    foretold: Foretold | None = None
    kept: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Foretell:
    """Say that it will end; None takes back what was said."""

    end: Foretold | None


@dataclass(frozen=True, slots=True)
class End:
    """End it now, as if somebody had asked."""

    because: EndCause


@dataclass(frozen=True, slots=True)
class Fail:
    """It cannot come to anything any more."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Shelve:
    """Its resume cannot come to anything any more; what was kept is kept on."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Finish:
    """It has ended for whoever asks, although its node has not said so: what is left there is stopped on."""


Fate = Foretell | End | Fail | Shelve | Finish | None


def outlive(it: Living, now: datetime) -> Fate:
    """None: it lives on as it is. Called again and again; the same answer is harmless twice."""
    match it.state:
        case SessionState.STARTING if now - it.since > it.setup + SLOW_START:
            return Fail(Reason.TIMED_OUT, "its node did not start it in time")
        case SessionState.RUNNING if it.away_since is not None and now - it.away_since > LOST:
            return Fail(Reason.NODE_LOST, "nothing has been heard of its node for too long")
        case SessionState.SUSPENDING:
            slow = now - it.since > SLOW_SUSPEND
            return Fail(Reason.TIMED_OUT, "its node did not suspend it in time") if slow else None
        case SessionState.RESUMING if now - it.since > it.setup + SLOW_START:
            return Shelve(Reason.TIMED_OUT, "its node did not resume it in time")
        case SessionState.ENDING:
            return Finish() if now - it.since > SLOW_END else None
        case SessionState.ENDED | SessionState.FAILED:
            return None
        case _:
            return _by_its_life(it, now)


def _by_its_life(it: Living, now: datetime) -> Fate:
    ends, told = _ends(it, now), it.foretold
    holds = told is not None and told.because in ends and ends[told.because] <= told.at
    if told is not None and holds and now >= told.at:
        return End(told.because)
    due = [cause for cause, end in ends.items() if now >= end - _notice(it, cause)]
    if not due:
        return None if told is None or holds else Foretell(None)
    first = min(due, key=lambda cause: ends[cause])
    if told is not None and holds and told.because is first:
        return None
    return Foretell(Foretold(max(ends[first], now + _notice(it, first)), first))


def _ends(it: Living, now: datetime) -> Mapping[EndCause, datetime]:
    """When its life ends and why, as things are now."""
    ends = {}
    if it.life.longest is not None:
        ends[EndCause.LIFE_OVER] = it.created_at + timedelta(seconds=it.life.longest)
    if it.life.idle is not None and it.state is SessionState.RUNNING:
        used = now if it.busy else max(it.used_at or it.since, it.since)
        ends[EndCause.IDLE] = used + timedelta(seconds=it.life.idle)
    if it.kept is not None and it.state is SessionState.SUSPENDED:
        ends[EndCause.KEPT_LONG_ENOUGH] = it.since + it.kept
    return ends


def _notice(it: Living, because: EndCause) -> timedelta:
    if because is EndCause.KEPT_LONG_ENOUGH:
        return min(NOTICE_OF_KEPT, (it.kept or timedelta()) / 4)
    whole = it.life.idle if because is EndCause.IDLE else it.life.longest
    return min(NOTICE, timedelta(seconds=(whole or 0) / 4))
