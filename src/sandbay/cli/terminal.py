"""The terminal of whoever runs a command line: raw while a program inside has it, and as it was afterwards."""

import contextlib
import os
import queue
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator

Size = tuple[int, int]
"""Rows, columns."""

_DEFAULT: Size = (24, 80)


def size() -> Size:
    """Of the terminal here, or a usual one when there is none."""
    for fd in (1, 0, 2):
        with contextlib.suppress(OSError):
            found = os.get_terminal_size(fd)
            if found.lines and found.columns:
                return found.lines, found.columns
    return _DEFAULT


@contextlib.contextmanager
def raw() -> Iterator[None]:
    """Within the block every key goes inside, Ctrl-C too. Whatever ends the block, the terminal is as it was."""
    if not os.isatty(0):
        yield
        return
    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        with contextlib.suppress(termios.error):  # it is gone
            termios.tcsetattr(0, termios.TCSANOW, before)
        sys.stdout.flush()


@contextlib.contextmanager
def resizes(tell: Callable[[int, int], object]) -> Iterator[None]:
    """Within the block each new size is told, from a thread: a handler may run in the middle of anything."""
    changed: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def pass_on() -> None:
        while changed.get():
            tell(*size())

    before = signal.signal(signal.SIGWINCH, lambda *_: changed.put(True))  # noqa: FBT003 - put has no name for it
    threading.Thread(target=pass_on, name="sandbay-resize", daemon=True).start()
    try:
        changed.put(True)  # noqa: FBT003
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
        changed.put(False)  # noqa: FBT003
