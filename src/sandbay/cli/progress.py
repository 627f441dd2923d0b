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
_LINE = 60


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
        if progress.step is not None and progress.steps is not None:
            self._show(_setup_of(progress), 0, None)
        else:
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


def _setup_of(progress: "Progress") -> str:
    """The step, and the last line that it has printed."""
    lines = [line for line in (progress.output or "").splitlines() if line.strip()]
    said = "".join(c for c in lines[-1] if c.isprintable())[:_LINE] if lines else ""
    doing = f"{progress.phase} {progress.step}/{progress.steps} {(progress.doing or '')[:_LINE]}"
    return f"{doing}: {said}" if said else doing


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Amount(DownloadColumn):
        """Bytes, where there are any: a setup has none."""

        def render(self, task: Task) -> Text:
            return super().render(task) if task.completed or task.total else Text()

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), Amount(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
