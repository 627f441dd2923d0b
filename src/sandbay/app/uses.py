"""Who uses which Session, as this Core sees it. In memory: rows hear of it now and then, never at each command."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sandbay.domain.ids import SessionId
from sandbay.ports.clock import Clock

KEEP_AFTER = timedelta(seconds=15)
"""A use that is so much later than the row says is written down. Who looks at the row may be another Core."""


class Uses:
    """Safe from any thread."""

    def __init__(self) -> None:
        """Nobody uses anything."""
        self._lock = threading.Lock()
        self._under_way: Counter[SessionId] = Counter()
        self._last: dict[SessionId, datetime] = {}

    @contextmanager
    def during(self, session: SessionId, clock: Clock) -> Iterator[None]:
        """A command or a transfer, from its beginning to its end."""
        with self._lock:
            self._under_way[session] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= Counter({session: 1})
                self._last[session] = clock.now()

    def of(self, session: SessionId, now: datetime) -> tuple[bool, datetime | None]:
        """Whether one is under way, and when the last one that is known here was."""
        with self._lock:
            busy = self._under_way[session] > 0
            return busy, now if busy else self._last.get(session)

    def forget(self, session: SessionId, until: datetime) -> None:
        """Its rows have all of it up to a time."""
        with self._lock:
            if self._last.get(session, until) <= until:
                self._last.pop(session, None)
