"""Changes of how long a Session lives."""

from dataclasses import dataclass
from datetime import datetime

from sandbay.domain.ids import SessionId
from sandbay.domain.life import Foretold
from sandbay.ports.changes import Change


@dataclass(frozen=True, slots=True)
class Foretell(Change):
    """Say that a Session is going to end, or take that back; an event tells of it. Relies on its revision."""

    session: SessionId
    revision: int
    end: Foretold | None
    at: datetime


@dataclass(frozen=True, slots=True)
class UseSession(Change):
    """Somebody used it. Harmless when a later use is known already; no event tells of it."""

    session: SessionId
    at: datetime
