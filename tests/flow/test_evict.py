"""What a node lets go: tables with a healthy variant beside each case, and random disks against a second reading."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbay.domain.disk import Coming, Disk, DiskBudget, HeldVariant, Kept, Marks, coming
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault, Layer
from sandbay.domain.want import WantedSet, Why
from sandbay.flow.evict import NodeView, Room, keep, make_room
from tests.flow.worlds import NOW, sha

S = ReadinessState
KEYS = [ContentKey(sha(n)) for n in range(1, 11)]
A, B, C, D = KEYS[:4]
MARKS = Marks(100, 80, 70)
FULL = Fault(Reason.NO_SPACE, "full")


def disk(*held: Mapping[str, int], marks: Marks = MARKS, loose: Mapping[str, int] | None = None) -> Disk:
    """KEYS in this order, the first the least recently used."""
    variants = tuple(HeldVariant(k, frozenset(p), NOW + timedelta(minutes=n)) for n, (k, p) in _numbered(held))
    parts = {part: size for parts in (loose or {}, *held) for part, size in parts.items()}
    return Disk(parts, variants, marks, 1000)


def _numbered(held: tuple[Mapping[str, int], ...]) -> list[tuple[int, tuple[ContentKey, Mapping[str, int]]]]:
    return list(enumerate(zip(KEYS, held, strict=False)))


def ready(*keys: ContentKey) -> dict[ContentKey, Readiness]:
    return {key: Readiness(S.READY, wanted=False, attempt=1) for key in keys}


def exactly(**parts: int) -> Coming:
    return Coming(parts, parts)


TENS = tuple({f"p{n}": 10} for n in range(10))


@pytest.mark.parametrize(
    "count, gone",
    [(7, 0), (8, 0), (9, 2), (10, 3)],
    ids=["below both marks", "at the high mark", "above it, down to the low mark", "no further"],
)
def test_the_oldest_go_until_the_low_mark_and_no_further(count: int, gone: int) -> None:
    view = NodeView(disk(*TENS[:count]), WantedSet(), ready(*KEYS[:count]))
    assert make_room(view, NOW) == Room(go=tuple(KEYS[:gone]))


# What keeps the least recently used of ten. The next ones go in its place.
HELD_BY = {
    "required": (WantedSet(((A, Why.REQUIRED),)), {}, (), Kept.REQUIRED),
    "a Session runs": (WantedSet(((A, Why.SESSION),)), {}, (), Kept.SESSION),
    "a wish": (WantedSet(((A, Why.WISH),)), {}, (), Kept.WISH),
    "a preload that is not done": (WantedSet(((A, Why.CACHED),)), {}, (), Kept.PRELOAD),
    "a Session waits, says Core": (WantedSet(), {}, (A,), Kept.WAITING),
    "pulled": (WantedSet(), {A: Readiness(S.PULLING)}, (), Kept.PREPARING),
    "queued": (WantedSet(), {A: Readiness(S.QUEUED)}, (), Kept.PREPARING),
}


@pytest.mark.parametrize("name", HELD_BY)
def test_what_something_needs_stays_and_the_next_go(name: str) -> None:
    wanted, other, refused, why = HELD_BY[name]
    held = {**ready(*KEYS), **other}
    assert keep(wanted, held, refused)[A] is why
    assert make_room(NodeView(disk(*TENS), wanted, held, refused=refused), NOW).go == tuple(KEYS[1:4])
    assert make_room(NodeView(disk(*TENS), WantedSet(), ready(*KEYS)), NOW).go == tuple(KEYS[:3])


def test_nothing_goes_before_it_is_seen_what_is_whole() -> None:
    """After a restart whatever is proved first would otherwise go first, however lately it was used."""
    held = {**ready(*KEYS), D: Readiness(S.VERIFYING)}
    for wanted, go in ((WantedSet(), ()), (WantedSet(((D, Why.WISH),)), (A, B, C))):
        assert make_room(NodeView(disk(*TENS), wanted, held), NOW).go == go
    assert keep(WantedSet(), held, ()) == {D: Kept.PREPARING}
    demand = WantedSet(((KEYS[9], Why.WISH),))
    again = {**ready(*KEYS[:9]), D: Readiness(S.VERIFYING)}
    view = NodeView(disk(*TENS[:9]), demand, again, {KEYS[9]: exactly(new=20)}, slots=2)
    assert make_room(view, NOW) == Room((), frozenset({KEYS[9]}))


def test_every_reason_is_told_and_the_strongest_wins() -> None:
    assert {why for _, _, _, why in HELD_BY.values()} == set(Kept)
    assert keep(WantedSet(((A, Why.SESSION),)), {A: Readiness(S.PULLING)}, (A,)) == {A: Kept.SESSION}
    assert keep(WantedSet(), {A: Readiness(S.PULLING)}, (A,)) == {A: Kept.WAITING}
    assert keep(WantedSet(), {**ready(A), B: Readiness(S.FAILED, fault=FULL), C: Readiness(S.EVICTING)}, ()) == {}


def test_shared_parts_count_once_and_go_with_the_last_that_has_them() -> None:
    base = {"base": 50}
    three = disk({**base, "a": 10}, {**base, "b": 10}, {**base, "c": 20})
    view = NodeView(three, WantedSet(), ready(A, B, C))
    assert three.used == 90
    assert make_room(view, NOW).go == (A, B), "90 less 10 less 10, and not 60 at once"
    assert three.only([A]) == {"a"}
    assert three.only([A, B, C]) == {"base", "a", "b", "c"}


def test_what_would_free_nothing_stays() -> None:
    """Its bytes are a required image's as well; dropping it would only cost its return."""
    both = disk({"p": 60}, {"p": 60}, {"q": 30})
    wanted = WantedSet(((B, Why.REQUIRED),))
    assert make_room(NodeView(both, wanted, ready(A, B, C)), NOW).go == (C,)
    assert make_room(NodeView(both, WantedSet(), ready(A, B, C)), NOW).go == (A, B), "together they free it"


def test_what_is_going_already_is_not_paid_for_twice() -> None:
    held = {**ready(*KEYS), A: Readiness(S.EVICTING), B: Readiness(S.EVICTING)}
    assert make_room(NodeView(disk(*TENS), WantedSet(), held), NOW).go == (), "80 are left, the high mark"
    assert make_room(NodeView(disk(*TENS, loose={"x": 1}), WantedSet(), held), NOW).go == (C, D)


def test_demand_gets_room_before_it_begins_and_no_more_than_it_needs() -> None:
    view = NodeView(disk(*TENS[:7]), WantedSet(((KEYS[9], Why.WISH),)), ready(*KEYS[:7]), {KEYS[9]: exactly(new=30)})
    assert make_room(view, NOW) == Room((A, B)), "it fits the budget, so it need not wait for what goes"
    larger = {KEYS[9]: exactly(new=40)}
    view = NodeView(disk(*TENS[:7]), WantedSet(((KEYS[9], Why.WISH),)), ready(*KEYS[:7]), larger)
    assert make_room(view, NOW) == Room((A, B, C), frozenset({KEYS[9]})), "110 are more than there is"
    going = ready(*KEYS[:7]) | dict.fromkeys((A, B, C), Readiness(S.EVICTING))
    view = NodeView(view.disk, view.wanted, going, larger)
    assert make_room(view, NOW) == Room((), frozenset({KEYS[9]})), "not before they have gone"
    assert make_room(NodeView(disk(*TENS[:4]), view.wanted, ready(*KEYS[:4]), larger), NOW) == Room()


def test_nothing_goes_in_vain_for_what_can_never_fit() -> None:
    wanted = WantedSet(((A, Why.REQUIRED), (KEYS[9], Why.SESSION)))
    small, big = exactly(new=90), exactly(new=91)
    for it, room in ((big, Room()), (small, Room((B, C), frozenset({KEYS[9]})))):
        view = NodeView(disk(*TENS[:3]), wanted, ready(A, B, C), {KEYS[9]: it})
        assert make_room(view, NOW) == room, "it begins, and is refused by name before it is fetched"


def test_what_may_not_go_makes_nobody_wait_for_ever() -> None:
    wanted = WantedSet(((KEYS[9], Why.WISH),))
    view = NodeView(disk(*TENS[:7]), wanted, ready(*KEYS[:7]), {KEYS[9]: Coming({"n": 30}, {"n": 90})}, KEYS[:7])
    assert make_room(view, NOW) == Room(), "the engine has the last word on what it cannot know"


def test_demand_goes_before_preload_and_preload_makes_nothing_go() -> None:
    """R86: room for some, all are preloaded, a Session wants the last."""
    each = {key: exactly(**{f"n{n}": 25}) for n, key in enumerate(KEYS[:6])}
    preloads = WantedSet(tuple((key, Why.CACHED) for key in KEYS[:6]))
    view = NodeView(disk(), preloads, {}, each, slots=2)
    assert make_room(view, NOW) == Room(wait=frozenset(KEYS[3:6])), "three fit below the high mark"
    two = NodeView(disk({"n0": 25}, {"n1": 25}, {"n2": 25}), preloads, ready(A, B, C), each, slots=2)
    assert make_room(two, NOW) == Room(wait=frozenset(KEYS[3:6]))
    last = KEYS[5]
    demand = WantedSet(((last, Why.WISH), *((key, Why.CACHED) for key in KEYS[3:5])))
    now = NodeView(two.disk, demand, ready(A, B, C), each, slots=2)
    assert make_room(now, NOW) == Room((A,), frozenset(KEYS[3:5])), "75 + 25 are within the budget, above the mark"


def test_what_is_whole_takes_no_slot_from_what_is_to_be_fetched() -> None:
    new = KEYS[9]
    wanted = WantedSet(((A, Why.WISH), (new, Why.WISH)))
    held = {**ready(*KEYS[1:8]), A: Readiness(S.FAILED, fault=FULL)}
    view = NodeView(disk(*TENS[:8]), wanted, held, {A: exactly(p0=10), new: exactly(new=10)})
    assert make_room(view, NOW).go == (B,)


def test_what_is_there_is_not_fetched_again_by_whoever_shares_it() -> None:
    wanted = WantedSet(((B, Why.WISH), (C, Why.CACHED)))
    held = {**ready(A), B: Readiness(S.PULLING, wanted=True)}
    each = {B: Coming({"base": 30, "b": 5}, {"base": 90, "b": 5}), C: exactly(c=10)}
    assert make_room(NodeView(disk({"base": 30}), wanted, held, each), NOW) == Room()


def test_no_preload_begins_while_demand_waits_for_room() -> None:
    wanted = WantedSet(((KEYS[9], Why.WISH), (KEYS[8], Why.CACHED)))
    each = {KEYS[9]: exactly(new=40), KEYS[8]: exactly(small=1)}
    view = NodeView(disk(*TENS[:7]), wanted, ready(*KEYS[:7]), each)
    assert make_room(view, NOW) == Room((A, B, C), frozenset(KEYS[8:]))


def test_a_slot_decides_for_how_much_demand_room_is_made() -> None:
    wanted = WantedSet(tuple((key, Why.WISH) for key in KEYS[7:]))
    each = {key: exactly(**{key: 20}) for key in KEYS[7:]}
    for slots, busy, gone in ((1, 0, 1), (2, 0, 3), (3, 0, 5), (2, 1, 3), (1, 1, 1)):
        at_work = {KEYS[7]: Readiness(S.PULLING, wanted=True)} if busy else {}
        view = NodeView(disk(*TENS[:7]), wanted, ready(*KEYS[:7]) | at_work, each, slots=slots)
        assert make_room(view, NOW).go == tuple(KEYS[:gone])


@pytest.mark.parametrize(
    "it, begins",
    [
        (Readiness(S.FAILED, wanted=True, fault=FULL), False),
        (Readiness(S.FAILED, wanted=True, fault=FULL, retry_at=NOW + timedelta(seconds=1)), False),
        (Readiness(S.FAILED, wanted=True, fault=FULL, retry_at=NOW), True),
        (Readiness(S.FAILED, wanted=False, fault=FULL), True),
        (Readiness(S.QUEUED, wanted=True), True),
        (Readiness(S.READY, wanted=True), False),
    ],
)
def test_a_failure_that_is_not_due_needs_no_room(it: Readiness, *, begins: bool) -> None:
    wanted = WantedSet(((KEYS[9], Why.WISH),))
    view = NodeView(disk(*TENS[:8]), wanted, {**ready(*KEYS[:8]), KEYS[9]: it}, {KEYS[9]: exactly(new=10)})
    assert bool(make_room(view, NOW).go) is begins


def test_the_budget_is_what_is_granted_or_what_is_left_of_the_disk() -> None:
    assert DiskBudget().marks(0, 1000, 1000) == Marks(800, 720, 600)
    assert DiskBudget().marks(300, 100, 1000) == Marks(400, 360, 300), "others have filled the disk"
    assert DiskBudget(bytes=500, high=0.8, low=0.7).marks(0, 1000, 1000) == Marks(500, 400, 350)
    assert DiskBudget(bytes=5000).marks(200, 800, 1000).budget == 1000
    assert DiskBudget().marks(0, 0, 1000) == Marks(0, 0, 0)


def test_what_is_coming_is_told_from_the_layers() -> None:
    def layer(name: str, size: int, kind: str) -> Layer:
        return Layer(f"sha256:{name}", name, size, f"application/vnd.oci.image.layer.v1.{kind}")

    twice = layer("a", 10, "tar")
    found = coming([twice, layer("b", 10, "tar+gzip"), layer("c", 10, "tar+zstd"), twice])
    assert found == Coming({"a": 10, "b": 10, "c": 10}, {"a": 10, "b": 30, "c": 30})


# A second reading of the rule, from sets alone: the shortest run of the oldest after which both marks are kept.
def oracle(view: NodeView, needed: Mapping[str, int]) -> tuple[ContentKey, ...]:
    marks = view.disk.marks
    named = {key for key, _ in view.wanted.items}
    kept = named | set(view.refused)
    kept |= {key for key, it in view.held.items() if it.state in (S.QUEUED, S.PULLING, S.VERIFYING)}
    going = {key for key, it in view.held.items() if it.state is S.EVICTING}
    if any(view.held.get(it.key, Readiness()).state is S.VERIFYING and it.key not in named for it in view.disk.held):
        return ()
    old = [it.key for it in sorted(view.disk.held, key=lambda it: it.used_at) if it.key not in kept | going]
    loose = set(view.disk.parts) - {p for it in view.disk.held for p in it.parts}

    def names(gone: Collection[ContentKey]) -> set[str]:
        return loose | {p for it in view.disk.held if it.key not in gone for p in it.parts}

    def bytes_of(parts: Collection[str]) -> int:
        return sum({**needed, **view.disk.parts}[p] for p in parts)

    def bytes_left(gone: Collection[ContentKey]) -> int:
        # What is needed anyway does not go with whoever has it now.
        return bytes_of(names(gone) | (set(needed) & set(view.disk.parts) & names(going)))

    mark = marks.low if bytes_left(going) > marks.high else marks.high
    for n in range(len(old) + 1):
        gone = {*going, *old[:n]}
        if bytes_left(gone) <= mark and bytes_of(names(gone) | set(needed)) <= marks.high:
            break
    chosen = old[:n]
    for key in reversed(old[:n]):
        without = [k for k in chosen if k != key]
        if names({*going, *without}) | set(needed) == names({*going, *chosen}) | set(needed):
            chosen = without
    return tuple(chosen)


def _world(dice: Random) -> tuple[NodeView, dict[str, int]]:
    names = [f"p{n}" for n in range(12)]
    sizes = {name: dice.randint(0, 30) for name in names}
    held = [set(dice.sample(names, dice.randint(0, 4))) for _ in range(dice.randint(0, 8))]
    loose = {name: sizes[name] for name in dice.sample(names, dice.randint(0, 2))}
    budget = dice.randint(0, 250)
    marks = Marks(budget, budget * 9 // 10, budget * 7 // 10)
    there = disk(*({p: sizes[p] for p in parts} for parts in held), marks=marks, loose=loose)
    states = {
        it.key: Readiness(dice.choice([S.READY] * 6 + [S.EVICTING, S.VERIFYING, S.FAILED, S.ABSENT]))
        for it in there.held
        if dice.random() < 0.9
    }
    wanted = tuple((it.key, dice.choice(list(Why))) for it in there.held if dice.random() < 0.2)
    refused = [it.key for it in there.held if dice.random() < 0.1]
    needed = {p: sizes[p] for p in dice.sample(names, dice.randint(0, 3))} | {"fresh": dice.randint(0, 40)}
    at_work = {KEYS[9]: Readiness(S.PULLING, wanted=True)}
    items = WantedSet((*wanted, (KEYS[9], Why.WISH)))
    return NodeView(there, items, states | at_work, {KEYS[9]: Coming(needed, needed)}, refused), needed


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_it_is_what_the_second_reading_says(seed: int) -> None:
    view, needed = _world(Random(seed))  # noqa: S311
    assert make_room(view, NOW).go == oracle(view, needed)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_nothing_protected_goes_and_going_on_comes_to_an_end(seed: int) -> None:
    view, _ = _world(Random(seed))  # noqa: S311
    protected = {key for key, _ in view.wanted.items} | set(view.refused)
    states = dict(view.held)
    for _ in range(20):
        go = make_room(NodeView(view.disk, view.wanted, states, view.coming, view.refused), NOW).go
        assert not protected & set(go)
        if not go:
            return
        states |= dict.fromkeys(go, Readiness(S.EVICTING))
    pytest.fail("it never comes to an end")
