"""Running one command in a sandbox, for `run` and `sessions exec`: bytes through, exit code back."""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sandbay.cli import render

if TYPE_CHECKING:
    from sandbay.sdk._sync.commands import Commands
    from sandbay.sdk.commands import Options, Result

Command = str | Sequence[str] | None
"""A shell line, arguments, or the image's own command."""


_PIECE = 64 * 1024


def standard_input(*, wanted: bool) -> bytes | None:
    """All of standard input, when it is to be passed on."""
    return sys.stdin.buffer.read() if wanted else None


def _live_input() -> Iterator[bytes]:
    """Standard input as it comes. Not through `sys.stdin`, whose lock a waiting thread would hold at our end."""
    while data := os.read(0, _PIECE):
        yield data


def follow(commands: "Commands", command: Command, options: "Options", *, interactive: bool) -> int:
    """Pass its output through as it comes; return its exit code. Raises `StartError` (timed_out)."""
    outputs = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    with commands.follow(command, options, _live_input() if interactive else None) as stream:
        for chunk in stream:
            output = outputs[chunk.stream]
            output.write(chunk.data)
            output.flush()
        return _exit_code(stream.exit_code, timed_out=stream.timed_out, timeout=options.timeout)


def collect(commands: "Commands", command: Command, options: "Options", about: dict[str, Any]) -> int:
    """Run it to its end and print one JSON document: `about` and the result. Returns its exit code."""
    result = commands.collect(command, options)
    render.document({**about, **_as_json(result)})
    return _exit_code(result.exit_code, timed_out=result.timed_out, timeout=options.timeout)


def _as_json(result: "Result") -> dict[str, Any]:
    return {
        "exit_code": result.exit_code,
        "timed_out": result.timed_out,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "stdout_bytes": result.stdout_total,
        "stderr_bytes": result.stderr_total,
        "stdout_truncated": result.stdout_truncated,
        "stderr_truncated": result.stderr_truncated,
    }


def _exit_code(code: int | None, *, timed_out: bool, timeout: float | None) -> int:
    if timed_out or code is None:
        from sandbay.sdk.errors import StartError

        limit = "its limit" if timeout is None else f"{timeout:g} s"
        raise StartError(f"the command took longer than {limit} and was stopped", code="timed_out", param="timeout")
    return code
