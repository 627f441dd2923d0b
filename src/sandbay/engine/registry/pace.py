"""When to try again. One `Pace` is shared by all that fetch here, so that a registry's limit holds for all of them."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.registry.refusals import PassingError


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited for what. Seconds and bytes."""

    connect: float = 10.0
    read: float = 30.0
    """Without a single byte."""
    head: float = 60.0
    """For the whole head of an answer, from when it is waited for: status and headers, and what is said before them."""
    tries: int = 5
    """In a row without progress, until the fault is what is answered."""
    first_pause: float = 0.5
    limit_pause: float = 2.0
    """The first pause after a 429 that does not say how long to wait."""
    longest_pause: float = 30.0
    longest_wait: float = 120.0
    """What a registry may ask us to wait; beyond that, whoever asked is told to come again."""
    window: float = 30.0
    window_bytes: int = 32 * 1024
    """Fewer bytes than this in a whole window are a stall."""
    progress_bytes: int = 8 * 1024**2
    """So many bytes are progress: tries are counted anew."""


class Pace:
    """Pauses between tries, and the time before which a registry wants no request."""

    def __init__(
        self,
        patience: Patience | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sleep` and `clock` are a test's to replace."""
        self.patience = patience or Patience()
        self.clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._not_before: dict[str, float] = {}

    def wait_for(self, registry: str) -> None:
        """Return when the registry may be asked again."""
        while (left := self._left(registry)) > 0:
            self._sleep(left)

    def pause(self, registry: str, fault: PassingError, tries: int) -> None:
        """Wait before the next try, longer each time, or raise the fault when there have been enough."""
        if tries >= self.patience.tries:
            raise fault if fault.wait is None else _come_again(fault, fault.wait)
        limited = fault.refusal.reason is Reason.RATE_LIMITED
        first = self.patience.limit_pause if limited else self.patience.first_pause
        grown = min(first * 2 ** (tries - 1), self.patience.longest_pause)
        # Jitter, so that not everybody comes back at once; its randomness protects nothing.
        wait = grown * (1 + random.random() / 4) if fault.wait is None else fault.wait  # noqa: S311
        if wait > self.patience.longest_wait:
            raise _come_again(fault, wait)
        if limited or fault.wait is not None:
            with self._lock:
                self._not_before[registry] = max(self._not_before.get(registry, 0.0), self.clock() + wait)
            self.wait_for(registry)
        else:
            self._sleep(wait)

    def _left(self, registry: str) -> float:
        with self._lock:
            return self._not_before.get(registry, 0.0) - self.clock()


def _come_again(fault: PassingError, wait: float) -> RefusedError:
    refusal = fault.refusal
    return RefusedError(refusal.reason, refusal.message, details={**refusal.details, "retry_after": int(wait) + 1})


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer asks to wait. A date counts from the answer's own `Date`: clocks differ."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        then, now = (parsedate_to_datetime(text) for text in (said, headers.get("date", "")))
    except ValueError:
        return None
    return max(0.0, (then.replace(tzinfo=UTC) - now.replace(tzinfo=UTC)).total_seconds())
