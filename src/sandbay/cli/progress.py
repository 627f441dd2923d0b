"""A bar for whatever takes longer than a second, on standard error; a plain line where that is no terminal."""

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sandbay.cli.render import note

if TYPE_CHECKING:
    from sandbay.sdk.resources import Progress

_QUIET_FOR = 1.0


class Bar:
    """Give its `update` to the SDK as the callback. rich is loaded only when there is a bar to draw."""

    def __init__(self, what: str, *, quiet: bool, phase: str | None = None) -> None:
        """`what` stands before the bar. `phase` is what is shown as long as nobody calls `update`."""
        self._what, self._quiet = what, quiet
        self._since = time.monotonic()
        self._drawn: Any = None
        self._said: str | None = None
        self._lock = threading.Lock()
        self._timer = None if phase is None or quiet else threading.Timer(_QUIET_FOR, self._show, (phase, 0, None))

    def update(self, progress: "Progress") -> None:
        """Show how far it is."""
        if self._quiet or time.monotonic() - self._since < _QUIET_FOR:
            return
        self._stop_timer()
        self._show(progress.phase, progress.bytes_done, progress.bytes_total or None)

    def _show(self, phase: str, done: int, total: int | None) -> None:
        with self._lock:
            if not sys.stderr.isatty():
                if phase != self._said:
                    note(f"{self._what}: {phase}")
                self._said = phase
                return
            if self._drawn is None:
                self._drawn = _bar()
                self._drawn.start()
                self._drawn.add_task("")
            self._drawn.update(
                self._drawn.task_ids[0], description=f"{self._what}: {phase}", completed=done, total=total
            )

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        self._stop_timer()
        with self._lock:
            if self._drawn is not None:
                self._drawn.stop()
                self._drawn = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            if self._timer.is_alive():
                self._timer.join()
            self._timer = None


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
