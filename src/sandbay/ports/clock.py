"""Time is a port."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time in UTC, for records; monotonic seconds, for limits."""

    def now(self) -> datetime:
        """Aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
