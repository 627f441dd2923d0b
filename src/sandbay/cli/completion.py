"""What the shell offers after TAB: names and ids, when an installation answers at once, and otherwise nothing."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

from sandbay.cli import connect

_SECONDS = 5.0
"""Longer nobody waits for a TAB."""


def images(incomplete: str) -> list[str]:
    """Names of images."""
    return _offered(_names, incomplete)


def sessions(incomplete: str) -> list[str]:
    """Ids of Sessions that have not ended."""
    return _offered(_live, incomplete)


def _names() -> Iterator[str]:
    if connect.known().admin_key is None:
        with connect.project() as client:
            yield from (image.name for image in client.images.list())
    else:
        with connect.administrator() as admin:
            yield from (image.name for image in admin.images.list())


def _live() -> Iterator[str]:
    with connect.project() as client:
        yield from (session.id for session in client.sessions.list() if session.status not in {"ended", "failed"})


def _offered(found: Callable[[], Iterator[str]], incomplete: str) -> list[str]:
    from sandbay.sdk.errors import SandbayError

    try:
        connect.known()  # before the clock runs: loading the SDK is no waiting for anybody
        with _in_time():
            return [text for text in found() if text.startswith(incomplete)]
    except (SandbayError, OSError):  # a time-out is an OSError, too; a shell has no use for either
        return []


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
