"""Step 6. Core's word on an allocation × what the provider sees → the agent's next move.

One table serves a fresh order, a retry, adoption after a crash and the sweep of what nobody owns.
UNKNOWN is never taken for "no": the agent looks again and destroys nothing.
"""

from collections.abc import Mapping
from enum import StrEnum

from sandbay.domain.allocation import AllocationState, Presence


class Move(StrEnum):
    """What the agent does. Each may be repeated."""

    CREATE = "create"
    START_OVER = "start_over"
    ADOPT = "adopt"
    DESTROY = "destroy"
    SUSPEND = "suspend"
    REPORT_LOST = "report_lost"
    REPORT_CLOSED = "report_closed"
    LOOK_AGAIN = "look_again"
    NOTHING = "nothing"


_S, _P = AllocationState, Presence

_MOVES: Mapping[tuple[AllocationState | None, Presence], Move] = {
    (_S.RESERVED, _P.ABSENT): Move.CREATE,
    (_S.RESERVED, _P.RUNNING): Move.ADOPT,
    (_S.RESERVED, _P.EXITED): Move.CREATE,
    (_S.STARTING, _P.ABSENT): Move.CREATE,
    (_S.STARTING, _P.RUNNING): Move.ADOPT,
    (_S.STARTING, _P.EXITED): Move.CREATE,
    (_S.RUNNING, _P.ABSENT): Move.REPORT_LOST,
    (_S.RUNNING, _P.RUNNING): Move.ADOPT,
    (_S.RUNNING, _P.EXITED): Move.REPORT_LOST,
    # Suspending is repeatable: what was kept already is told again, and a sandbox that ended still has its files.
    (_S.SUSPENDING, _P.ABSENT): Move.SUSPEND,
    (_S.SUSPENDING, _P.RUNNING): Move.SUSPEND,
    (_S.SUSPENDING, _P.EXITED): Move.SUSPEND,
    (_S.STOPPING, _P.ABSENT): Move.REPORT_CLOSED,
    (_S.STOPPING, _P.RUNNING): Move.DESTROY,
    (_S.STOPPING, _P.EXITED): Move.DESTROY,
    (_S.CLOSED, _P.ABSENT): Move.NOTHING,
    (_S.CLOSED, _P.RUNNING): Move.DESTROY,
    (_S.CLOSED, _P.EXITED): Move.DESTROY,
    (None, _P.ABSENT): Move.NOTHING,
    (None, _P.RUNNING): Move.DESTROY,
    (None, _P.EXITED): Move.DESTROY,
}


_UNFINISHED = frozenset({AllocationState.RESERVED, AllocationState.STARTING})


def run(said: AllocationState | None, seen: Presence, *, prepared: bool = True) -> Move:
    """`said` is None when Core knows no such allocation.

    `prepared`: its initialisation is known to be done, or there is none. A sandbox whose initialisation may have been
    cut short is used by nobody yet: it is thrown away, and the steps run again in a fresh one, never twice in the same.
    """
    if seen is Presence.UNKNOWN:
        return Move.LOOK_AGAIN
    if not prepared and said in _UNFINISHED and seen is not Presence.ABSENT:
        return Move.START_OVER
    return _MOVES[said, seen]
