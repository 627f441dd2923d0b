"""Being told to stop, so that what a command made in the installation is removed on the way out."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_KILLED_BY = 128


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within the block the first SIGINT, SIGTERM or SIGHUP raises `SystemExit(128 + n)`; later ones do nothing.

    So tidying up in a `finally` is not torn apart by a second Ctrl-C. What is ignored already stays so.
    """

    def stop(number: int, _frame: FrameType | None) -> None:
        for other in _STOPS:
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(_KILLED_BY + number)

    before = {number: signal.getsignal(number) for number in _STOPS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
