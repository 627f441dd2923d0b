"""How long a Session may live, and why it ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SHORTEST = 10
"""Seconds: less than that is a mistake, and could not be announced."""

LONGEST = 366 * 24 * 3600


class EndCause(StrEnum):
    """Why a Session that did not fail came to its end."""

    ASKED = "asked"
    IDLE = "idle"
    LIFE_OVER = "life_over"
    KEPT_LONG_ENOUGH = "kept_long_enough"


@dataclass(frozen=True, slots=True)
class Life:
    """Seconds: without anybody using it, and from its admission on. None is without a limit."""

    idle: int | None = None
    longest: int | None = None

    def over(self, other: "Life") -> "Life":
        """What this one says, and what the other says where this one is silent."""
        return Life(
            other.idle if self.idle is None else self.idle, other.longest if self.longest is None else self.longest
        )

    def within(self, ceiling: "Life") -> "Life":
        """The shorter of both, member by member."""
        return Life(_least((self.idle, ceiling.idle)), _least((self.longest, ceiling.longest)))


NO_LIMIT = Life()


@dataclass(frozen=True, slots=True)
class Foretold:
    """That a Session is going to end, said ahead of it."""

    at: datetime
    because: EndCause


def _least(bounds: Iterable[int | None]) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
