# Made by `./dev sdk` from _async/streaming.py, which is the one to edit.
"""A command as it runs: its output as it comes, its input as it is given."""

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sandbay.sdk import frames
from sandbay.sdk.twins import Pieces, Quota, aside, each

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection


class CommandStream:
    """A running command's output: iterate over `Chunk(stream, data)`, then ask `exit_code`, `timed_out`.

    Leaving it early (closing it, or the end of a `with`) kills the command and all that it started.
    """

    def __init__(self, socket: "ClientConnection", stdin: Pieces | None) -> None:
        """`stdin` is read while the command runs, as far as the command takes it."""
        self.exit_code: int | None = None
        """The command's exit code; None before its end and at a time-out."""
        self.timed_out = False
        """Whether it was stopped at its time-out."""
        self._socket = socket
        self._quota = Quota(frames.CREDIT)
        self._fault: Exception | None = None
        self._pieces = self._read()
        self._feeding = None if stdin is None else aside(self._feed, stdin)

    def __iter__(self) -> Iterator[frames.Chunk]:
        return self._pieces

    def resize(self, rows: int, columns: int) -> None:
        """Its terminal has this size now. Without a terminal it does nothing, as after its end."""
        self._tell(frames.resizing(rows, columns))

    def signal(self, name: str) -> None:
        """Send a signal, as `TERM`, to all that the command started. After its end it does nothing."""
        self._tell(frames.signalling(name))

    def _tell(self, message: str) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        with contextlib.suppress(ConnectionClosed):
            self._socket.send(message)

    def close(self) -> None:
        """End the stream; kills the command if it still runs."""
        self._hang_up()
        # One that is being read at this moment learns it from the connection.
        with contextlib.suppress(RuntimeError, ValueError):
            self._pieces.close()

    def _hang_up(self) -> None:
        self._quota.end()
        if self._feeding is not None:
            self._feeding.cancel()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> frames.Chunks:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - its library is loaded only for this

        try:
            taken = 0
            while not self._take(said := frames.read(self._socket.recv())):
                if isinstance(said, frames.Chunk):
                    yield said
                    taken += len(said.data)
                if taken >= frames.CREDIT // 2:
                    with contextlib.suppress(ConnectionClosed):  # what had come before its end is still read
                        self._socket.send(frames.granting(taken))
                    taken = 0
        except ConnectionClosed as error:
            raise self._fault or frames.lost() from error
        finally:
            self._hang_up()

    def _take(self, said: frames.Chunk | frames.Room | frames.End) -> bool:
        """Whether it was the end."""
        if isinstance(said, frames.Room):
            self._quota.add(said.size)
        elif isinstance(said, frames.End):
            self.exit_code, self.timed_out = said.exit_code, said.timed_out
        return isinstance(said, frames.End)

    def _feed(self, stdin: Pieces) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        try:
            for data in each(stdin):
                for message in frames.input_of(data):
                    if not self._quota.take(len(message) - 1):
                        return
                    self._socket.send(message)
            self._socket.send(frames.END_OF_INPUT)
        except ConnectionClosed:
            return  # whoever reads the output is told
        except Exception as error:  # noqa: BLE001 - raised where the output is read
            self._fault = error
            self._socket.close()
