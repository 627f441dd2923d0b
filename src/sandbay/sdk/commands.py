"""Running commands in a sandbox: collected, or as a stream."""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from sandbay.sdk.errors import BadAnswerError
from sandbay.sdk.frames import MEDIA_TYPE, Chunk, Frames, lost
from sandbay.sdk.transport import Call, Transport, segment

_SPARE = 60.0  # seconds that the server may take on top of the command's own time-out


@dataclass(frozen=True, slots=True)
class Result:
    """A command's end and its output, as far as it was kept (16 MiB a stream).

    exit_code: its own, 128+n for signal n, 126, 127; None when it was stopped at its time-out.
    *_total: bytes that the command wrote, kept or not.
    """

    exit_code: int | None
    timed_out: bool
    stdout_bytes: bytes
    stderr_bytes: bytes
    stdout_total: int
    stderr_total: int
    stdout_truncated: bool
    stderr_truncated: bool

    @property
    def stdout(self) -> str:
        """Standard output as text; what is not UTF-8 is shown as U+FFFD."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """Standard error as text; what is not UTF-8 is shown as U+FFFD."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """Whether anything is missing from either stream."""
        return self.stdout_truncated or self.stderr_truncated


@dataclass(frozen=True, slots=True)
class Options:
    """How to run a command.

    entrypoint: instead of the image's; an empty one clears it.
    image_command: the image's entrypoint stands before the arguments, and its own command runs without any.
    stdin: all of the standard input. timeout: seconds.
    """

    env: Mapping[str, str] | None = None
    user: str | None = None
    workdir: str | None = None
    stdin: bytes | None = None
    timeout: float | None = None
    entrypoint: Sequence[str] | None = None
    image_command: bool = False

    def body(self, command: str | Sequence[str] | None) -> dict[str, Any]:
        """The request's body: a text is a shell line, a list is arguments, None is the image's own command."""
        said: dict[str, Any] = {
            "env": dict(self.env) if self.env else None,
            "user": self.user,
            "workdir": self.workdir,
            "stdin": None if self.stdin is None else base64.b64encode(self.stdin).decode(),
            "timeout": self.timeout,
            "entrypoint": None if self.entrypoint is None else list(self.entrypoint),
            "image_command": True if self.image_command else None,
        }
        if command is not None:
            said |= {"shell": command} if isinstance(command, str) else {"argv": list(command)}
        return {name: value for name, value in said.items() if value is not None}


class CommandStream:
    """A running command's output: iterate over `Chunk(stream, data)`, then ask `exit_code`, `timed_out`.

    Leaving it early (`close`, or the end of a `with`) kills the command and all that it started.
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
        limit = None if options.timeout is None else options.timeout + _SPARE
        return _result(self._transport.send(Call("POST", self._path, json=options.body(command), read_timeout=limit)))

    def follow(self, command: str | Sequence[str] | None, options: Options) -> CommandStream:
        """`stream` with all options; None is the image's own command."""
        limit = None if options.timeout is None else options.timeout + _SPARE
        call = Call("POST", self._path, json=options.body(command), headers={"Accept": MEDIA_TYPE}, read_timeout=limit)
        response = self._transport.open(call)
        if response.headers.get("content-type", "").partition(";")[0].strip() != MEDIA_TYPE:
            response.close()
            raise BadAnswerError("the server did not stream the command's output", code="bad_answer")
        return CommandStream(response)


def _result(data: Any) -> Result:
    try:
        stdout, stderr = base64.b64decode(data["stdout"]), base64.b64decode(data["stderr"])
        return Result(
            exit_code=data["exit_code"],
            timed_out=data["timed_out"],
            stdout_bytes=stdout,
            stderr_bytes=stderr,
            stdout_total=data.get("stdout_bytes", len(stdout)),
            stderr_total=data.get("stderr_bytes", len(stderr)),
            stdout_truncated=data.get("stdout_truncated", False),
            stderr_truncated=data.get("stderr_truncated", False),
        )
    except (KeyError, TypeError, binascii.Error) as error:
        raise BadAnswerError("the server's answer is no command's result", code="bad_answer") from error
