# Made by `./dev sdk` from _async/commands.py, which is the one to edit.
"""Running commands in a sandbox: collected, or as a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sandbay.sdk import frames
from sandbay.sdk._sync.streaming import CommandStream
from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.commands import Options, Result, result_of
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import Pieces


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
        stdin: bytes | str | Pieces | None = None,
        timeout: float | None = None,
        terminal: tuple[int, int] | None = None,
    ) -> CommandStream:
        """As `run`, with the output as it comes. What `run` raises is raised here or by the first chunk.

        An iterable `stdin` is read while the command runs, as far as the command takes it. `terminal`: give it one
        with so many rows and columns; then all output is `stdout`.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        feed = [data] if isinstance(data, bytes) else data
        return self.follow(command, Options(env, user, workdir, timeout=timeout, terminal=terminal), feed)

    def collect(self, command: str | Sequence[str] | None, options: Options) -> Result:
        """`run` with all options; None is the image's own command."""
        call = Call("POST", self._path, json=options.body(command), read_timeout=options.read_timeout)
        return result_of(self._transport.send(call))

    def follow(
        self, command: str | Sequence[str] | None, options: Options, stdin: Pieces | None = None
    ) -> CommandStream:
        """`stream` with all options; None is the image's own command. `stdin` where the options have none."""
        feed = stdin if options.stdin is None else [options.stdin]
        body = replace(options, stdin=None).body(command)
        socket = self._transport.websocket(self._path)
        try:
            socket.send(frames.start(body, stdin=feed is not None, terminal=options.terminal))
            return CommandStream(socket, feed)
        except BaseException:
            socket.close()
            raise
