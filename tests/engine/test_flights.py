"""One transfer at a time, and nobody who depends on another."""

import threading
from collections.abc import Callable

import pytest

from sandbay.engine.flights import Flights

LONG = 20


class Fetcher:
    """Takes a turn in a thread of its own, and holds it until `leave` is set."""

    def __init__(self, flights: Flights, digest: str, *, fails: bool = False) -> None:
        self.took, self.leave, self.done = threading.Event(), threading.Event(), threading.Event()
        self.give_up = threading.Event()
        self._flights, self._digest, self._fails = flights, digest, fails
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._flights.turn(self._digest, self.give_up.is_set):
                self.took.set()
                self.leave.wait(LONG)
                if self._fails:
                    raise ConnectionResetError
        except ConnectionResetError:
            pass
        self.done.set()

    def end(self) -> None:
        self.leave.set()
        self._thread.join(LONG)


@pytest.fixture
def fetch() -> Callable[..., Fetcher]:
    flights = Flights()
    return lambda digest, **how: Fetcher(flights, digest, **how)


@pytest.mark.parametrize("fails", [False, True])
def test_the_second_waits_and_has_its_turn_however_the_first_one_ends(
    fetch: Callable[..., Fetcher], *, fails: bool
) -> None:
    first = fetch("a", fails=fails)
    assert first.took.wait(LONG)
    second, other = fetch("a"), fetch("b")
    assert other.took.wait(LONG), "another digest waits for nobody"
    assert not second.took.is_set()
    first.end()
    assert second.took.wait(LONG)
    for each in (second, other):
        each.end()


def test_who_gives_up_ends_nobody_elses_transfer(fetch: Callable[..., Fetcher]) -> None:
    first = fetch("a")
    assert first.took.wait(LONG)
    second, third = fetch("a"), fetch("a")
    second.give_up.set()
    assert second.took.wait(LONG)
    second.end()
    assert second.done.is_set()
    assert not first.done.is_set()
    assert not third.took.is_set(), "who gave up had no turn to hand on"
    first.end()
    assert third.took.wait(LONG)
    third.end()
