"""One command's streams and its end, in the calling thread.

The exit status ends the call. What the program wrote is in the pipes by then, so exactly that much is still
read; nobody waits for an end of file, which a background child could hold back for ever.
"""

import fcntl
import itertools
import os
import selectors
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Emit, Stream

CHUNK = 65_536
"""Bytes that are read at once."""

_LOOK_SECONDS = 0.05
START_SECONDS = 60.0
"""How long a program may take to start."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The program did not start: why, in the words of what should have started it, and what that means for the call.

    Either the call's exit code, or the reason to refuse it, or None when it is this host's fault.
    """

    complaint: str
    meaning: Reason | int | None = None


class Start(Protocol):
    """A program that something starts for us, and how it fares. Exit codes are 128+n for signal n."""

    def fileno(self) -> int:
        """Readable when there is news."""

    def started(self) -> int | NotStarted | None:
        """Wait for it to run; if it does not, or has ended already, how. Refuses when nobody can tell."""

    def ended(self) -> int | NotStarted:
        """How it ended, once there is news; a last attempt to run it can have failed. Refuses as `started`."""

    def close(self) -> None:
        """Stop listening."""


class Guard:
    """Kills at the time-out or when `cancel` is set, also while whoever takes the output makes us wait."""

    def __init__(self, kill: Callable[[], None], timeout: float | None, cancel: threading.Event | None) -> None:
        """`timeout` in seconds from now. A thread runs only if there is something to watch."""
        self._kill = kill
        self._cancel = cancel
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None
        self.timed_out = False
        self.fired = False

    def __enter__(self) -> Self:
        if self._deadline is not None or self._cancel is not None:
            self._thread = threading.Thread(target=self._watch, name="exec-guard", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._finished.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._finished.wait(self._step()):
            late = self._deadline is not None and time.monotonic() >= self._deadline
            if late or (self._cancel is not None and self._cancel.is_set()):
                self.timed_out = late
                self.fired = True
                self._kill()
                return

    def _step(self) -> float:
        left = float("inf") if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        return left if self._cancel is None else min(left, _LOOK_SECONDS)


class Feeder:
    """Writes stdin from a thread of its own: the next chunk may be long in coming, and the pipe may be full."""

    def __init__(self, chunks: Iterable[bytes], fd: int, end: bytes = b"") -> None:
        """Takes over `fd`, a pipe's writing end or a terminal; `end` is written after the last chunk."""
        self._chunks = itertools.chain(chunks, [end])
        self._fd = fd
        self._finished = threading.Event()
        threading.Thread(target=self._feed, name="exec-stdin", daemon=True).start()

    def stop(self) -> None:
        """The program has ended; what it did not read is dropped."""
        self._finished.set()

    def _feed(self) -> None:
        os.set_blocking(self._fd, False)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._fd, selectors.EVENT_WRITE)
                for chunk in self._chunks:
                    view = memoryview(chunk)
                    while view and not self._finished.is_set():
                        if selector.select(_LOOK_SECONDS):
                            view = view[self._write(view) :]
                    if self._finished.is_set():
                        return
        except OSError:
            return  # nobody reads it any more
        finally:
            os.close(self._fd)

    def _write(self, view: memoryview) -> int:
        try:
            return os.write(self._fd, view[:CHUNK])
        except BlockingIOError:
            return 0


class Source(Protocol):
    """One stream of output."""

    fd: int
    stream: Stream

    def read(self) -> bytes | None:
        """The next bytes when there is something to read; empty at the end, None when there are none yet."""

    def rest(self) -> Iterator[bytes]:
        """What was written before the program's end, and not more."""


class Pipe:
    """A pipe's reading end."""

    def __init__(self, fd: int, stream: Stream) -> None:
        """The caller closes it."""
        self.fd, self.stream = fd, stream

    def read(self) -> bytes | None:
        """The next bytes, empty at the end."""
        return os.read(self.fd, CHUNK)

    def rest(self) -> Iterator[bytes]:
        """What is in the pipe now."""
        left: int = struct.unpack("i", fcntl.ioctl(self.fd, termios.FIONREAD, b"\0\0\0\0"))[0]
        while left > 0 and (data := os.read(self.fd, min(left, CHUNK))):
            left -= len(data)
            yield data


def pump(start: Start, emit: Emit, begin: Callable[[], Sequence[Source]]) -> int | NotStarted:
    """Pass output on until the program has ended. Raises what `emit` raises, and refuses as `Start` does.

    Output is read only once the program runs, from what `begin` then tells: before that, the runtime's own complaints
    would be in it.
    """
    early = start.started()
    if early is not None:
        return early
    sources = {source.fd: source for source in begin()}
    with selectors.DefaultSelector() as selector:
        selector.register(start, selectors.EVENT_READ)
        for fd in sources:
            selector.register(fd, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is start:
                    for source in sources.values():
                        for data in source.rest():
                            emit(source.stream, data)
                    return start.ended()
                if not _pass(sources[key.fd], emit):
                    selector.unregister(key.fd)


def _pass(source: Source, emit: Emit) -> bool:
    """Whether there may be more."""
    data = source.read()
    if data:
        emit(source.stream, data)
    return data != b""
