"""Contestants in turn: each round has every one of them once, beginning with another one each time."""

from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")


def interleaved(rounds: int, contestants: Mapping[str, Callable[[], T]], *, warm_up: bool = True) -> dict[str, list[T]]:
    """What each contestant measured in each round, in the order of rounds. A first round to warm up does not count."""
    if warm_up:
        for measure in contestants.values():
            measure()
    taken: dict[str, list[T]] = {name: [] for name in contestants}
    names = list(contestants)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(contestants[name]())
    return taken
