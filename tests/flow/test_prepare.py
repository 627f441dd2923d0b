"""A node's half of preparing: every single cell, and whole runs of it through `domain.readiness`."""

from datetime import datetime, timedelta
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.readiness import Readiness, ReadinessEvent, ReadinessState, advance
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault
from sandbay.domain.want import WantedSet, Why
from sandbay.flow.prepare import Moves, prepare
from tests.flow.worlds import NOW, sha

E, S = ReadinessEvent, ReadinessState
SOON, LONG_AGO = NOW + timedelta(minutes=1), NOW - timedelta(minutes=1)
KEYS = [ContentKey(sha(n)) for n in range(1, 9)]
KEY = KEYS[0]
FAULT = Fault(Reason.NO_SPACE, "full")


def it(state: ReadinessState, *, wanted: bool = True, retry_at: datetime | None = None) -> Readiness:
    return Readiness(state, wanted, 1, FAULT if state is S.FAILED else None, retry_at)


def wants(*keys: ContentKey, why: Why = Why.WISH) -> WantedSet:
    return WantedSet(tuple((key, why) for key in keys))


# Held → the events with a free slot, as `wanted here / not wanted here`. In brackets: only with a free slot.
CELLS: dict[str, tuple[Readiness | None, str, str]] = {
    "never seen": (None, "wanted [slot]", ""),
    "absent": (it(S.ABSENT, wanted=False), "wanted [slot]", ""),
    "queued": (it(S.QUEUED), "[slot]", "unwanted"),
    "pulling": (it(S.PULLING), "", "unwanted"),
    "verifying": (it(S.VERIFYING), "", "unwanted"),
    "verifying, given up": (it(S.VERIFYING, wanted=False), "wanted", ""),
    "ready": (it(S.READY), "", "unwanted"),
    "ready, given up": (it(S.READY, wanted=False), "wanted", ""),
    "evicting": (it(S.EVICTING, wanted=False), "wanted", ""),
    "evicting, wanted again": (it(S.EVICTING), "", "unwanted"),
    "failed for good": (it(S.FAILED), "", "unwanted"),
    "failed, too early": (it(S.FAILED, retry_at=SOON), "", "unwanted"),
    "failed, due": (it(S.FAILED, retry_at=LONG_AGO), "retry [slot]", "unwanted"),
    "failed, due this moment": (it(S.FAILED, retry_at=NOW), "retry [slot]", "unwanted"),
    "failed, given up": (it(S.FAILED, wanted=False, retry_at=LONG_AGO), "wanted", "unwanted"),
    "failed for good, given up": (it(S.FAILED, wanted=False), "wanted", "unwanted"),
}


@pytest.mark.parametrize("slots", [0, 1, 2])
@pytest.mark.parametrize("name", CELLS)
def test_every_cell(name: str, slots: int) -> None:
    held, wanted, unwanted = CELLS[name]
    there = {} if held is None else {KEY: held}
    busy = held is not None and held.state in (S.PULLING, S.VERIFYING)
    for why in Why:
        expected = [word for word in wanted.split() if not word.startswith("[") or slots > busy]
        moves = prepare(wants(KEY, why=why), there, slots, NOW)
        assert moves == tuple((KEY, E(word.strip("[]"))) for word in expected)
    assert prepare(wants(), there, slots, NOW) == tuple((KEY, E(word)) for word in unwanted.split())


def test_the_table_has_every_state() -> None:
    assert {held.state for held, _, _ in CELLS.values() if held is not None} == set(S)


@pytest.mark.parametrize("slots, busy, started", [(s, b, max(s - b, 0)) for s, b in product(range(4), range(4))])
def test_slots_go_to_the_strongest_reasons_and_no_further(slots: int, busy: int, started: int) -> None:
    working = {KEYS[5 + n]: it([S.PULLING, S.VERIFYING][n % 2], wanted=n != 1) for n in range(busy)}
    order = [KEYS[2], KEYS[0], KEYS[4], KEYS[1]]
    items = tuple(zip(order, [Why.REQUIRED, Why.REQUIRED, Why.SESSION, Why.WISH], strict=True))
    held = {KEYS[1]: it(S.QUEUED), KEYS[4]: it(S.QUEUED), **working}
    moves = prepare(WantedSet((*items, *((key, Why.WISH) for key in working))), held, slots, NOW)
    assert [key for key, event in moves if event is E.SLOT] == order[:started]
    first_slot = len(moves) - started
    assert all(event is not E.SLOT for _, event in moves[:first_slot])


def test_other_variants_are_left_alone() -> None:
    held = {KEYS[0]: it(S.READY), KEYS[1]: it(S.FAILED), KEYS[2]: it(S.READY, wanted=False)}
    assert prepare(wants(KEYS[0], KEYS[1]), held, 1, NOW) == ()


# Whole runs. Time stands still unless a test moves it; each piece of work ends well or badly.
class Bench:
    """A node whose work ends in the order in which it began."""

    def __init__(self, held: dict[ContentKey, Readiness], slots: int, dice: Random) -> None:
        self.held, self.slots, self.now, self.dice = held, slots, NOW, dice
        self.started: list[ContentKey] = []
        self.most = self.busy()

    def busy(self) -> int:
        return sum(r.state in (S.PULLING, S.VERIFYING) for r in self.held.values())

    def move(self, key: ContentKey, event: ReadinessEvent, retry_at: datetime | None = None) -> None:
        before = self.held.get(key, Readiness())
        after = advance(before, event, attempt=before.attempt, fault=FAULT, retry_at=retry_at)
        assert isinstance(after, Readiness), (before, event, after)
        self.held[key] = after
        self.most = max(self.most, self.busy())
        if event is E.SLOT:
            self.started.append(key)

    def decide(self, wanted: WantedSet) -> Moves:
        moves = prepare(wanted, self.held, self.slots, self.now)
        for key, event in moves:
            self.move(key, event)
        return moves

    def work(self, *, may_fail: bool) -> bool:
        """One event of one piece of work; False when there is none."""
        doing = {S.PULLING: E.FETCHED, S.VERIFYING: E.PROVED, S.EVICTING: E.REMOVED}
        at_work = [key for key, r in self.held.items() if r.state in doing]
        if not at_work:
            return False
        key = self.dice.choice(at_work)
        event = doing[self.held[key].state]
        breaks = may_fail and event is not E.REMOVED and self.dice.random() < 0.3
        self.move(key, E.BROKE if breaks else event, self.dice.choice([None, SOON]) if breaks else None)
        return True

    def settle(self, wanted: WantedSet, *, may_fail: bool = True) -> None:
        for _ in range(200):
            if not self.decide(wanted) and not self.work(may_fail=may_fail):
                return
        pytest.fail("it never settles")


START = [held for held, _, _ in CELLS.values() if held is not None and held.state not in (S.PULLING, S.VERIFYING)]
SEEDS = st.integers(0, 10**6)


def _bench(dice: Random) -> tuple[Bench, WantedSet]:
    held = {key: dice.choice(START) for key in KEYS if dice.random() < 0.6}
    chosen = dice.sample(KEYS, dice.randint(0, len(KEYS)))
    items = sorted(((key, dice.choice(list(Why))) for key in chosen), key=lambda item: item[1])
    return Bench(held, dice.randint(1, 3), dice), WantedSet(tuple(items))


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_it_settles_with_every_wanted_variant_ready_or_failed(seed: int) -> None:
    bench, wanted = _bench(Random(seed))  # noqa: S311
    before = dict(bench.held)
    bench.settle(wanted)
    reasons = wanted.reasons()
    for key, after in bench.held.items():
        was = before.get(key, Readiness())
        if key in reasons:
            assert after.state in (S.READY, S.FAILED)
            assert after.wanted
        else:
            assert not after.wanted
            assert after.state is (S.READY if was.state is S.READY else S.ABSENT)
        if was.state is S.READY:
            assert after.state is S.READY, "what is ready is not touched"
            assert after.attempt == was.attempt
        if was.state is S.FAILED and key in reasons and (was.retry_at is None or was.retry_at > NOW):
            assert after.state is S.FAILED, "not before it is due"
            assert after.attempt == was.attempt
    assert set(reasons) <= set(bench.held)
    assert bench.decide(wanted) == ()
    assert bench.most <= bench.slots


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_changing_wishes_settle_too_and_never_take_more_than_the_slots(seed: int) -> None:
    dice = Random(seed)  # noqa: S311
    bench, wanted = _bench(dice)
    for _ in range(4):
        for _ in range(dice.randint(0, 4)):
            bench.decide(wanted)
            bench.work(may_fail=True)
        bench.now += timedelta(minutes=dice.choice([0, 1, 2]))
        _, wanted = _bench(dice)
    bench.now += timedelta(hours=1)
    bench.settle(wanted, may_fail=False)
    assert bench.most <= bench.slots
    assert {key for key, r in bench.held.items() if r.wanted} == set(wanted.reasons())
    for key, after in bench.held.items():
        if key not in wanted.reasons():
            assert after.state in (S.READY, S.ABSENT)
        elif after.state is S.FAILED:
            assert after.retry_at is None
        else:
            assert after.state is S.READY


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_stronger_reasons_start_first(seed: int) -> None:
    dice = Random(seed)  # noqa: S311
    bench, wanted = _bench(dice)
    bench.held = {key: r for key, r in bench.held.items() if r.state is not S.EVICTING}
    fresh = [key for key in wanted.reasons() if bench.held.get(key, Readiness()).state in (S.ABSENT, S.QUEUED)]
    bench.settle(wanted, may_fail=False)
    assert [key for key in bench.started if key in fresh] == fresh


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_the_same_view_gives_the_same_moves_and_stays_as_it_was(seed: int) -> None:
    bench, wanted = _bench(Random(seed))  # noqa: S311
    before = dict(bench.held)
    moves = prepare(wanted, bench.held, bench.slots, NOW)
    assert prepare(wanted, bench.held, bench.slots, NOW) == moves
    assert bench.held == before
    assert len(set(moves)) == len(moves)
