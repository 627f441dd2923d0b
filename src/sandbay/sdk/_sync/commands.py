# Made by `./dev sdk` from _async/commands.py, which is the one to edit.
"""Running commands in a sandbox: collected, or as a stream."""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

import httpx

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.commands import Options, Result, result_of
from sandbay.sdk.errors import BadAnswerError
from sandbay.sdk.frames import MEDIA_TYPE, Chunk, Frames, lost
from sandbay.sdk.transport import segment


class CommandStream:
    """A running command's output: iterate over `Chunk(stream, data)`, then ask `exit_code`, `timed_out`.

    Leaving it early (closing it, or the end of a `with`) kills the command and all that it started.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._frames = Frames()
        self._pieces = self._read()

    @property
    def exit_code(self) -> int | None:
        """The command's exit code; None before its end and at a time-out."""
        return self._frames.end.exit_code if self._frames.end else None

    @property
    def timed_out(self) -> bool:
        """Whether it was stopped at its time-out."""
        return self._frames.end is not None and self._frames.end.timed_out

    def __iter__(self) -> Iterator[Chunk]:
        return self._pieces

    def close(self) -> None:
        """End the stream; kills the command if it still runs."""
        self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> Iterator[Chunk]:
        try:
            for data in self._response.iter_raw():
                yield from self._frames.feed(data)
        except (httpx.TransportError, httpx.StreamError) as error:
            raise lost() from error
        finally:
            self._response.close()
        self._frames.finish()


class Commands:
    """The commands of one sandbox. A command is never sent twice, so a lost connection is an error."""

    def __init__(self, transport: Transport, session: str) -> None:
        self._transport, self._path = transport, f"/v1/sessions/{segment(session)}/exec"

    def run(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        workdir: str | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Run a shell line (text) or a program with arguments (list) to its end and collect what it prints.

        A command that fails, or is stopped after `timeout` seconds, is a result, not an error. Raises
        `RequestError` (no_shell, user_not_found, invalid_workdir, …), `StateError` (not_running), …
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return self.collect(command, Options(env, user, workdir, data, timeout))

    def stream(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        workdir: str | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
    ) -> CommandStream:
        """As `run`, with the output as it comes. Raises before the first chunk what `run` raises."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return self.follow(command, Options(env, user, workdir, data, timeout))

    def collect(self, command: str | Sequence[str] | None, options: Options) -> Result:
        """`run` with all options; None is the image's own command."""
        call = Call("POST", self._path, json=options.body(command), read_timeout=options.read_timeout)
        return result_of(self._transport.send(call))

    def follow(self, command: str | Sequence[str] | None, options: Options) -> CommandStream:
        """`stream` with all options; None is the image's own command."""
        call = Call(
            "POST",
            self._path,
            json=options.body(command),
            headers={"Accept": MEDIA_TYPE},
            read_timeout=options.read_timeout,
        )
        response = self._transport.open(call)
        if response.headers.get("content-type", "").partition(";")[0].strip() != MEDIA_TYPE:
            response.close()
            raise BadAnswerError("the server did not stream the command's output", code="bad_answer")
        return CommandStream(response)
