"""Every cell of the readiness table, against a table written down here on its own."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest

from sandbay.domain.readiness import Readiness, ReadinessEvent, ReadinessState, Unmoved, advance, may_follow
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault

E, S = ReadinessEvent, ReadinessState
NOW = 5
FAULT = Fault(Reason.DIGEST_MISMATCH, "wrong bytes")
OLD_FAULT = Fault(Reason.NO_SPACE, "full")
LATER = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)

# Columns in this order; "." means: it does not apply. Two entries a/b: unwanted/wanted before the event.
COLUMNS = ["wanted", "unwanted", "slot", "fetched", "proved", "broke", "retry", "drop", "removed", "lost"]
ORACLE = {
    "absent": "queued . . . . . . . . .",
    "queued": "queued absent pulling . . failed . . . .",
    "pulling": "pulling absent . verifying . failed . . . .",
    "verifying": "verifying verifying . . ready failed . . . .",
    "ready": "ready ready . . . . . evicting/. . failed",
    "evicting": "evicting evicting . . . failed . . absent/queued .",
    "failed": "failed absent . . . . ./queued . . .",
}
OF_ONE_ATTEMPT = {E.FETCHED, E.PROVED, E.BROKE, E.REMOVED, E.LOST, E.DROP}


def _expected(state: ReadinessState, event: ReadinessEvent, *, wanted: bool) -> str | None:
    cell = ORACLE[state.value].split()[COLUMNS.index(event.value)]
    unwanted_then, _, wanted_then = cell.partition("/")
    there = (wanted_then or unwanted_then) if wanted else unwanted_then
    return None if there == "." else there


def _before(state: ReadinessState, *, wanted: bool) -> Readiness:
    failed = state is S.FAILED
    return Readiness(state, wanted, NOW, OLD_FAULT if failed else None, EARLIER if failed else None, 30, 100)


CELLS = list(product(S, E, (-1, 0, 1), (False, True)))


def test_the_oracle_has_every_cell() -> None:
    assert set(COLUMNS) == set(E)
    assert set(ORACLE) == set(S)
    assert {len(row.split()) for row in ORACLE.values()} == {len(E)}
    assert len(CELLS) == 7 * 10 * 3 * 2


@pytest.mark.parametrize("state, event, drift, wanted", CELLS)
def test_every_cell(state: ReadinessState, event: ReadinessEvent, drift: int, wanted: bool) -> None:  # noqa: FBT001
    before = _before(state, wanted=wanted)
    after = advance(before, event, attempt=NOW + drift, fault=FAULT, retry_at=LATER)

    there = _expected(state, event, wanted=wanted)
    if there is None or (drift and event in OF_ONE_ATTEMPT):
        assert isinstance(after, Unmoved)
        assert after.why
        return
    assert isinstance(after, Readiness)
    assert after.state == there
    assert after.wanted is {E.WANTED: True, E.UNWANTED: False}.get(event, wanted)
    assert after.bytes_total == before.bytes_total

    stays = after.state is state
    begins = after.state is S.QUEUED and not stays
    assert after.attempt == NOW + begins
    if stays:
        assert after == replace(before, wanted=after.wanted)
    else:
        failed = after.state is S.FAILED
        assert (after.fault, after.retry_at) == ((FAULT, LATER) if failed else (None, None))
        assert after.bytes_done == (0 if begins or after.state is S.ABSENT else before.bytes_done)


def test_ready_only_through_verifying() -> None:
    ways = {
        (state, event)
        for state, event, wanted in product(S, E, (False, True))
        if isinstance(after := advance(_before(state, wanted=wanted), event, attempt=NOW), Readiness)
        and after.state is S.READY
        and state is not S.READY
    }
    assert ways == {(S.VERIFYING, E.PROVED)}


def test_ready_is_left_only_by_a_grant_or_a_loss() -> None:
    ways = {
        event
        for event, wanted in product(E, (False, True))
        if isinstance(after := advance(_before(S.READY, wanted=wanted), event, attempt=NOW), Readiness)
        and after.state is not S.READY
    }
    assert ways == {E.DROP, E.LOST}


@pytest.mark.parametrize("state, wanted", list(product(S, (False, True))))
def test_no_state_is_a_dead_end(state: ReadinessState, wanted: bool) -> None:  # noqa: FBT001
    seen, reached = [], [_before(state, wanted=wanted)]
    while reached:
        now = reached.pop()
        known = (now.state, now.wanted)
        if known in seen:
            continue
        seen.append(known)
        moves = (advance(now, event, attempt=now.attempt) for event in E)
        reached += [after for after in moves if isinstance(after, Readiness)]
    assert {s for s, _ in seen} == set(S)


STORED_AND_REPORTED = list(product(S, (-1, 0, 1, 2)))


@pytest.mark.parametrize("reported, drift", STORED_AND_REPORTED)
def test_core_follows_the_current_attempt_or_the_beginning_of_the_next(reported: ReadinessState, drift: int) -> None:
    stored = _before(S.FAILED, wanted=True)
    report = replace(_before(reported, wanted=True), attempt=NOW + drift)
    begins = reported in (S.QUEUED, S.PULLING)
    assert may_follow(stored, report) is (drift == 0 or (drift == 1 and begins))
