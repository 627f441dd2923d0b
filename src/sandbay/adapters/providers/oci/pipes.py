"""Three pipes as the standard streams of one program."""

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Self

from sandbay.adapters.providers.oci.streams import Feeder, Pipe, Source
from sandbay.domain.command import TerminalSize
from sandbay.ports.provider import Stream


class Pipes:
    """Its ends to give away, ours to keep until the block is left."""

    arguments: Sequence[str] = ()
    """For the runtime's exec."""

    def __init__(self, stdin: Iterable[bytes]) -> None:
        """Nothing is opened yet."""
        self._stdin = stdin
        self._feeder: Feeder | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self.stdout, self._stdout = _pipe(undo)
            self.stderr, self._stderr = _pipe(undo)
            if self._stdin == ():
                self._input = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
                self._feed = -1
            else:
                self._input, self._feed = os.pipe()
            undo.pop_all()
        return self

    def give(self) -> list[int]:
        """Descriptors of stdin, stdout, stderr for the program."""
        return [self._input, self._stdout, self._stderr]

    def begin(self) -> Sequence[Source]:
        """The program runs and has its own copies: close ours, feed it, and tell what to read."""
        self._close_given()
        if self._feed >= 0:
            self._feeder = Feeder(self._stdin, self._feed)
            self._feed = -1
        return [Pipe(self.stdout, Stream.STDOUT), Pipe(self.stderr, Stream.STDERR)]

    def resize(self, size: TerminalSize) -> None:
        """There is no terminal."""

    def __exit__(self, *_: object) -> None:
        self._close_given()
        if self._feeder is not None:
            self._feeder.stop()
        if self._feed >= 0:
            os.close(self._feed)
        os.close(self.stdout)
        os.close(self.stderr)

    def _close_given(self) -> None:
        for fd in (self._input, self._stdout, self._stderr):
            if fd >= 0:
                os.close(fd)
        self._input = self._stdout = self._stderr = -1


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    undo.callback(os.close, read)
    undo.callback(os.close, write)
    return read, write
