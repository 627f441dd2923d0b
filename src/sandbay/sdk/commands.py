"""How a command is asked for and what comes of it."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.errors import BadAnswerError

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
    terminal: rows and columns of the terminal that a streamed command gets.
    """

    env: Mapping[str, str] | None = None
    user: str | None = None
    workdir: str | None = None
    stdin: bytes | None = None
    timeout: float | None = None
    entrypoint: Sequence[str] | None = None
    image_command: bool = False
    terminal: tuple[int, int] | None = None

    @property
    def read_timeout(self) -> float | None:
        """Seconds without a sign of the command after which the connection is given up."""
        return None if self.timeout is None else self.timeout + _SPARE

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


def result_of(data: Any) -> Result:
    """From the JSON of a collected command. Raises `BadAnswerError`."""
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
