"""Events: what happened to a resource, for those who watch it.

A Session's are written down with the move itself, in the same transaction, so none is missing and none comes twice.
Their numbers rise, beginning with 1; a number may be left out, and means the same event for ever.
"""

from dataclasses import dataclass
from datetime import datetime

from sandbay.domain.ids import SessionId
from sandbay.domain.life import EndCause, Foretold
from sandbay.domain.release import Fault
from sandbay.domain.session import SessionState, WaitingFor


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """A Session came to a state, and why: what it waits for, or what went wrong. `number` is its revision then.

    Or it is told, in the state that it has, that it is going to end; or that it is not, after all.
    """

    session: SessionId
    number: int
    at: datetime
    state: SessionState
    waiting_for: WaitingFor | None = None
    fault: Fault | None = None
    foretold: Foretold | None = None
    ended_because: EndCause | None = None
