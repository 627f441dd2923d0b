"""Step 5, beside `prepare`. The bytes on a node × what is wanted there → what to let go, and what waits for room.

Above the high mark the least recently used variants go until the low mark is reached. What demand (a required image,
a Session, a wish) is about to fetch gets room before it is begun, and no more than it needs. What is only fetched
ahead of demand never makes anything go: it waits until it fits. A variant whose bytes others need as well frees
nothing and stays.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sandbay.domain.disk import Coming, Disk, HeldVariant, Kept, Parts
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.release import ContentKey
from sandbay.domain.want import WantedSet, Why

_S = ReadinessState
_BUSY = frozenset({_S.PULLING, _S.VERIFYING})
_UNDER_WAY = frozenset({_S.QUEUED, *_BUSY})
_KEPT = {Why.REQUIRED: Kept.REQUIRED, Why.SESSION: Kept.SESSION, Why.WISH: Kept.WISH, Why.CACHED: Kept.PRELOAD}
_ABSENT = Readiness()


@dataclass(frozen=True)
class NodeView:
    """One node at one moment. `coming` speaks of what is wanted; `refused` of what Core would not let go just now."""

    disk: Disk
    wanted: WantedSet
    held: Mapping[ContentKey, Readiness]
    coming: Mapping[ContentKey, Coming] = field(default_factory=dict)
    refused: Collection[ContentKey] = ()
    slots: int = 1


@dataclass(frozen=True)
class Room:
    """What to let go, the least recently used first, and what gets no slot before there is room for it."""

    go: tuple[ContentKey, ...] = ()
    wait: frozenset[ContentKey] = frozenset()


def keep(
    wanted: WantedSet, held: Mapping[ContentKey, Readiness], waiting: Collection[ContentKey]
) -> Mapping[ContentKey, Kept]:
    """Variants that may not go, each with its strongest reason. Sessions are `waiting` for some of them."""
    under_way = {key: Kept.PREPARING for key, it in held.items() if it.state in _UNDER_WAY}
    return under_way | dict.fromkeys(waiting, Kept.WAITING) | {key: _KEPT[why] for key, why in wanted.items}


def make_room(view: NodeView, now: datetime) -> Room:
    """What to do about room now. Called again with the same view it says the same."""
    disk, marks = view.disk, view.disk.marks
    going = frozenset(key for key, it in view.held.items() if it.state is _S.EVICTING)
    kept = frozenset(keep(view.wanted, view.held, view.refused))
    ahead, demand = _to_begin(view, now)
    first = [key for key in demand if _can_ever_fit(view, kept, key)]
    busy = [key for key, it in view.held.items() if it.state in _BUSY]
    needed = _likely(view, [*busy, *first])
    unsure = _proves_again(view)
    go = () if unsure else _let_go(disk, kept, going, needed)
    there = {**needed, **disk.parts}
    if first and (go or going or unsure) and sum(there.values()) > marks.budget:
        return Room(go, frozenset([*demand, *ahead]))
    return Room(go, frozenset(_held_back(view, ahead, there)))


def _proves_again(view: NodeView) -> bool:
    """Whether it has yet to be seen which of the bytes are whole: whoever is proved first would go first."""
    wanted, states = view.wanted.reasons(), view.held
    return any(
        it.key in states and states[it.key].state is _S.VERIFYING and it.key not in wanted for it in view.disk.held
    )


def _to_begin(view: NodeView, now: datetime) -> tuple[list[ContentKey], list[ContentKey]]:
    """What is to be fetched ahead of demand, and for demand as much as there are slots for; in the order of slots."""
    whole = {it.key for it in view.disk.held}
    queued = [
        (key, why)
        for key, why in view.wanted.items
        if key not in whole and _may_begin(view.held.get(key, _ABSENT), now)
    ]
    free = max(view.slots - sum(it.state in _BUSY for it in view.held.values()), 0)
    demand = [key for key, why in queued if why is not Why.CACHED]
    return [key for key, why in queued if why is Why.CACHED], demand[:free]


def _may_begin(it: Readiness, now: datetime) -> bool:
    if it.state is _S.FAILED:
        return not it.wanted or (it.retry_at is not None and it.retry_at <= now)
    return it.state in (_S.ABSENT, _S.QUEUED)


def _can_ever_fit(view: NodeView, kept: Collection[ContentKey], key: ContentKey) -> bool:
    """Whether it would fit once everything that may go has gone; if not, nothing goes for it in vain."""
    least = view.coming[key].least if key in view.coming else {}
    staying = {part: view.disk.parts[part] for it in view.disk.held if it.key in kept for part in it.parts}
    return sum({**least, **staying}.values()) <= view.disk.marks.budget


def _likely(view: NodeView, keys: Iterable[ContentKey]) -> dict[str, int]:
    return {part: size for key in keys if key in view.coming for part, size in view.coming[key].likely.items()}


def _let_go(
    disk: Disk, kept: Collection[ContentKey], going: Collection[ContentKey], needed: Parts
) -> tuple[ContentKey, ...]:
    """The least recently used until both marks are kept, less those that would free nothing."""
    left = {part: size for part, size in disk.parts.items() if part not in disk.only(going)}
    mark = disk.marks.low if sum(left.values()) > disk.marks.high else disk.marks.high
    users = Counter(part for it in disk.held if it.key not in going for part in it.parts) + Counter(list(needed))
    chosen: list[HeldVariant] = []
    for it in sorted(disk.held, key=lambda it: (it.used_at, it.key)):
        if sum(left.values()) <= mark and sum({**needed, **left}.values()) <= disk.marks.high:
            break
        if it.key in kept or it.key in going:
            continue
        chosen.append(it)
        users.subtract(it.parts)
        left = {part: size for part, size in left.items() if part not in it.parts or users[part]}
    return tuple(it.key for it in chosen if not all(users[part] for part in it.parts))


def _held_back(view: NodeView, ahead: Iterable[ContentKey], there: Parts) -> Iterator[ContentKey]:
    """Which of these do not fit below the high mark, with what is there and with each other."""
    for key in ahead:
        with_it = {**_likely(view, [key]), **there}
        if sum(with_it.values()) > view.disk.marks.high:
            yield key
        else:
            there = with_it
