"""This machine's clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The port `clock`, for real."""

    def now(self) -> datetime:
        """Aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
