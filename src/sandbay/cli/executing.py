"""Running one command in a sandbox, for `run` and `sessions exec`: bytes through, exit code back."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from sandbay.cli import render, terminal

if TYPE_CHECKING:
    from sandbay.sdk._sync.commands import Commands
    from sandbay.sdk._sync.streaming import CommandStream
    from sandbay.sdk.commands import Options, Result

Command = str | Sequence[str] | None
"""A shell line, arguments, or the image's own command."""

_PIECE = 64 * 1024
_NOT_STARTED = {126: "probably no program that can be executed", 127: "probably not in the image"}
"""What 126 and 127 mean of a command that said nothing: a shell that found no program would have."""


def standard_input(*, wanted: bool) -> bytes | None:
    """All of standard input, when it is to be passed on."""
    return sys.stdin.buffer.read() if wanted else None


def _live_input() -> Iterator[bytes]:
    """Standard input as it comes. Not through `sys.stdin`, whose lock a waiting thread would hold at our end."""
    while data := os.read(0, _PIECE):
        yield data


def size_of_terminal(*, tty: bool, as_json: bool) -> terminal.Size | None:
    """Rows and columns of the terminal that the command is to have, if any: those of the one here.

    Wrong usage: a terminal whose output is to be one document.
    """
    if tty and as_json:
        raise typer.BadParameter("a terminal's output cannot be collected; leave out -t or --json", param_hint="-t")
    return terminal.size() if tty else None


def follow(commands: "Commands", command: Command, options: "Options", *, interactive: bool) -> int:
    """Pass its output through as it comes; return its exit code. Raises `StartError` (timed_out).

    With a terminal here and one inside, the two are one meanwhile.
    """
    stdin = _live_input() if interactive else None
    with contextlib.ExitStack() as undo:
        stream = undo.enter_context(commands.follow(command, options, stdin))
        if options.terminal is not None:
            undo.enter_context(terminal.resizes(stream.resize))
            if interactive:
                undo.enter_context(terminal.raw())
        code, silent = _pass_on(stream, options)
    if silent and code in _NOT_STARTED and not isinstance(command, str):
        asked = command[0] if command else "the image's own command"
        print(f"sandbay: {render.clean(asked)}: {_NOT_STARTED[code]} (exit code {code}, no output)", file=sys.stderr)
    return code


def _pass_on(stream: "CommandStream", options: "Options") -> tuple[int, bool]:
    """The exit code, and whether there was no output."""
    outputs = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    silent = True
    for chunk in stream:
        silent = False
        output = outputs[chunk.stream]
        output.write(chunk.data)
        output.flush()
    return _exit_code(stream.exit_code, timed_out=stream.timed_out, timeout=options.timeout), silent


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
