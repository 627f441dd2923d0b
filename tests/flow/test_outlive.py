"""Time and Sessions: every state has an owner, a limit and a way out, and no end comes without a word."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.life import NO_LIMIT, EndCause, Foretold, Life
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SESSION_MOVES, SessionState
from sandbay.flow.outlive import (
    LOST,
    NOTICE,
    NOTICE_OF_KEPT,
    OWNERS,
    SLOW_END,
    SLOW_START,
    SLOW_SUSPEND,
    End,
    Fail,
    Finish,
    Foretell,
    Living,
    Owner,
    Shelve,
    outlive,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SETUP = timedelta(minutes=10)
SECOND = timedelta(seconds=1)
FOREVER = timedelta(days=10_000)


def living(state: SessionState, life: Life = NO_LIMIT, **more: object) -> Living:
    return replace(Living(state, life, T0, T0, SETUP), **more)  # type: ignore[arg-type] # as the caller says


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_every_state_has_an_owner_and_only_final_ones_have_none() -> None:
    assert set(OWNERS) == set(SessionState)
    assert {state for state, owner in OWNERS.items() if owner is Owner.NOBODY} == FINAL
    assert all(SESSION_MOVES[state] for state in set(SessionState) - FINAL)


WAYS_OUT: Mapping[SessionState, tuple[Living, object]] = {
    SessionState.WAITING: (living(SessionState.WAITING, Life(longest=60)), End(EndCause.LIFE_OVER)),
    SessionState.STARTING: (
        living(SessionState.STARTING),
        Fail(Reason.TIMED_OUT, "its node did not start it in time"),
    ),
    SessionState.RUNNING: (
        living(SessionState.RUNNING, away_since=T0),
        Fail(Reason.NODE_LOST, "nothing has been heard of its node for too long"),
    ),
    SessionState.SUSPENDING: (
        living(SessionState.SUSPENDING),
        Fail(Reason.TIMED_OUT, "its node did not suspend it in time"),
    ),
    SessionState.SUSPENDED: (
        living(SessionState.SUSPENDED, kept=timedelta(days=30)),
        End(EndCause.KEPT_LONG_ENOUGH),
    ),
    SessionState.RESUMING: (
        living(SessionState.RESUMING),
        Shelve(Reason.TIMED_OUT, "its node did not resume it in time"),
    ),
    SessionState.ENDING: (living(SessionState.ENDING), Finish()),
}


@pytest.mark.parametrize("state", sorted(set(SessionState) - FINAL))
def test_no_state_is_stuck_whoever_its_owner_is(state: SessionState) -> None:
    """Its owner does nothing at all; WAITING is besides ended at `wait_until`, by `app.place_session`."""
    view, way_out = WAYS_OUT[state]
    fate = outlive(view, T0 + FOREVER)
    if isinstance(fate, Foretell):
        assert fate.end is not None
        fate = outlive(replace(view, foretold=fate.end), fate.end.at)
    assert fate == way_out
    assert outlive(view, T0) is None, "not at once"


@pytest.mark.parametrize("state", sorted(FINAL))
def test_what_is_final_stays(state: SessionState) -> None:
    assert outlive(living(state, Life(10, 10), foretold=Foretold(T0, EndCause.IDLE)), T0 + FOREVER) is None


@pytest.mark.parametrize(
    "view, limit",
    [
        (living(SessionState.STARTING), SETUP + SLOW_START),
        (living(SessionState.RUNNING, away_since=T0), LOST),
        (living(SessionState.SUSPENDING), SLOW_SUSPEND),
        (living(SessionState.RESUMING), SETUP + SLOW_START),
        (living(SessionState.ENDING), SLOW_END),
    ],
)
def test_limits_are_met_and_not_before(view: Living, limit: timedelta) -> None:
    assert outlive(view, T0 + limit) is None
    assert outlive(view, T0 + limit + SECOND) is not None


def test_an_unused_one_is_told_then_ended() -> None:
    view = living(SessionState.RUNNING, Life(idle=400))
    assert outlive(view, at(339)) is None
    told = Foretell(Foretold(at(400), EndCause.IDLE))
    assert outlive(view, at(340)) == told
    view = replace(view, foretold=told.end)
    assert outlive(view, at(399)) is None
    assert outlive(view, at(400)) == End(EndCause.IDLE)


def test_what_is_suspended_is_told_a_day_ahead_and_then_let_go() -> None:
    kept, day = timedelta(days=30), NOTICE_OF_KEPT
    view = living(SessionState.SUSPENDED, Life(idle=10), kept=kept)
    assert outlive(view, T0 + kept - day - SECOND) is None, "nobody uses what is suspended, and it is not idle"
    told = Foretell(Foretold(T0 + kept, EndCause.KEPT_LONG_ENOUGH))
    assert outlive(view, T0 + kept - day) == told
    view = replace(view, foretold=told.end)
    assert outlive(view, T0 + kept - SECOND) is None
    assert outlive(view, T0 + kept) == End(EndCause.KEPT_LONG_ENOUGH)
    short = living(SessionState.SUSPENDED, kept=timedelta(hours=4))
    assert outlive(short, T0 + timedelta(hours=3) - SECOND) is None
    assert outlive(short, T0 + timedelta(hours=3)) is not None, "a quarter of its time, where that is shorter"
    assert outlive(replace(view, state=SessionState.RUNNING, foretold=None, life=NO_LIMIT), T0 + FOREVER) is None


def test_a_whole_life_goes_on_while_it_is_suspended() -> None:
    view = living(SessionState.SUSPENDED, Life(longest=3600), kept=timedelta(days=30))
    assert outlive(view, at(3540)) == Foretell(Foretold(at(3600), EndCause.LIFE_OVER))


def test_use_takes_back_what_was_foretold() -> None:
    told = Foretold(at(400), EndCause.IDLE)
    view = living(SessionState.RUNNING, Life(idle=400), foretold=told, used_at=at(350))
    assert outlive(view, at(351)) == Foretell(None)
    assert outlive(replace(view, foretold=None), at(351)) is None
    assert outlive(replace(view, used_at=None, busy=True), at(10_000)) == Foretell(None), "a command is under way"
    assert outlive(view, at(720)) == Foretell(Foretold(at(780), EndCause.IDLE)), "and it is told anew"


def test_a_whole_life_is_over_whatever_it_does() -> None:
    view = living(SessionState.RUNNING, Life(idle=50, longest=3600), busy=True)
    assert outlive(view, at(3539)) is None
    told = Foretold(at(3600), EndCause.LIFE_OVER)
    assert outlive(view, at(3540)) == Foretell(told)
    assert outlive(replace(view, foretold=told), at(3599)) is None
    assert outlive(replace(view, foretold=told), at(3600)) == End(EndCause.LIFE_OVER)


def test_the_first_of_two_ends_is_told_and_the_other_one_not_taken_back() -> None:
    life = Life(idle=40, longest=3600)
    told = Foretold(at(3600), EndCause.LIFE_OVER)
    view = living(SessionState.RUNNING, life, used_at=at(3550), foretold=told)
    assert outlive(view, at(3560)) is None, "an end that is later told does not take back one that holds"
    assert outlive(view, at(3580)) == Foretell(Foretold(at(3590), EndCause.IDLE))


def test_who_was_away_at_the_time_is_told_all_the_same() -> None:
    """This Core was down when it was due: it is told now, and has its notice."""
    view = living(SessionState.RUNNING, Life(idle=400))
    assert outlive(view, at(5_000)) == Foretell(Foretold(at(5_000) + NOTICE, EndCause.IDLE))


def test_nobody_uses_what_does_not_run() -> None:
    assert outlive(living(SessionState.STARTING, Life(idle=10)), at(500)) is None
    assert outlive(living(SessionState.WAITING, Life(idle=10)), at(500)) is None


def test_what_was_foretold_of_an_end_that_it_has_no_more_is_taken_back() -> None:
    view = living(SessionState.WAITING, Life(longest=3600), foretold=Foretold(at(5), EndCause.IDLE))
    assert outlive(view, at(6)) == Foretell(None)


def test_it_is_idle_from_when_it_runs() -> None:
    view = living(SessionState.RUNNING, Life(idle=100), since=at(1_000))
    assert outlive(view, at(1_074)) is None
    assert outlive(view, at(1_075)) == Foretell(Foretold(at(1_100), EndCause.IDLE))


SECONDS = st.none() | st.integers(10, 500)


@given(SECONDS, SECONDS, st.lists(st.integers(0, 2_000), max_size=6), st.integers(1, 60))
def test_each_end_was_foretold_and_its_notice_kept(
    idle: int | None, longest: int | None, uses: list[int], step: int
) -> None:
    """Looked at every `step` seconds, whenever it is used: it ends if it has a limit, in time, and never unsaid."""
    life, told, told_at = Life(idle, longest), None, 0
    view = living(SessionState.RUNNING, life)
    for now in range(0, 4_000, step):
        used = max((use for use in uses if use <= now), default=None)
        view = replace(view, used_at=None if used is None else at(used), foretold=told)
        fate = outlive(view, at(now))
        if isinstance(fate, Foretell):
            told, told_at = fate.end, now
        elif isinstance(fate, End):
            assert told is not None
            assert told.because is fate.because
            whole = idle if fate.because is EndCause.IDLE else longest
            assert whole is not None
            assert now - told_at >= min(NOTICE.total_seconds(), whole / 4)
            if fate.because is EndCause.IDLE:
                assert now - (used or 0) >= whole
            else:
                assert now >= whole
            return
    assert idle is None
    assert longest is None
