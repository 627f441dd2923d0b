"""Running commands in a sandbox: collected, or as a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sandbay.sdk import frames
from sandbay.sdk._async.streaming import AsyncCommandStream
from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.commands import Options, Result, result_of
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import AsyncPieces


class AsyncCommands:
    """The commands of one sandbox. A command is never sent twice, so a lost connection is an error."""

    def __init__(self, transport: AsyncTransport, session: str) -> None:
        self._transport, self._path = transport, f"/v1/sessions/{segment(session)}/exec"

    async def run(
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
        return await self.collect(command, Options(env, user, workdir, data, timeout))

    async def stream(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        workdir: str | None = None,
        stdin: bytes | str | AsyncPieces | None = None,
        timeout: float | None = None,
        terminal: tuple[int, int] | None = None,
    ) -> AsyncCommandStream:
        """As `run`, with the output as it comes. What `run` raises is raised here or by the first chunk.

        An iterable `stdin` is read while the command runs, as far as the command takes it. `terminal`: give it one
        with so many rows and columns; then all output is `stdout`.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin
        feed = [data] if isinstance(data, bytes) else data
        return await self.follow(command, Options(env, user, workdir, timeout=timeout, terminal=terminal), feed)

    async def collect(self, command: str | Sequence[str] | None, options: Options) -> Result:
        """`run` with all options; None is the image's own command."""
        call = AsyncCall("POST", self._path, json=options.body(command), read_timeout=options.read_timeout)
        return result_of(await self._transport.send(call))

    async def follow(
        self, command: str | Sequence[str] | None, options: Options, stdin: AsyncPieces | None = None
    ) -> AsyncCommandStream:
        """`stream` with all options; None is the image's own command. `stdin` where the options have none."""
        feed = stdin if options.stdin is None else [options.stdin]
        body = replace(options, stdin=None).body(command)
        socket = await self._transport.websocket(self._path)
        try:
            await socket.send(frames.start(body, stdin=feed is not None, terminal=options.terminal))
            return AsyncCommandStream(socket, feed)
        except BaseException:
            await socket.close()
            raise
