"""One transfer of a thing at a time in this process, however many want it.

Whoever comes second waits and then looks whether it is there. Nobody depends on anybody: when the first one fails or
gives up, the next one takes its turn, and who stops waiting ends no transfer.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOOK_SECONDS = 0.2


class Flights:
    """What is under way, by digest. Threads share it."""

    def __init__(self) -> None:
        """Nothing is under way."""
        self._changed = threading.Condition()
        self._flying: set[str] = set()

    @contextmanager
    def turn(self, digest: str, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Be the only one with this digest. Waits; who has `given_up` goes on at once, and must not begin anything."""
        mine = self._take(digest, given_up)
        try:
            yield
        finally:
            if mine:
                with self._changed:
                    self._flying.discard(digest)
                    self._changed.notify_all()

    def _take(self, digest: str, given_up: Callable[[], bool]) -> bool:
        with self._changed:
            while digest in self._flying:
                if given_up():
                    return False
                self._changed.wait(_LOOK_SECONDS)
            self._flying.add(digest)
            return True
