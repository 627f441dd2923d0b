"""`/v1/sessions/{id}/exec` as a WebSocket: a command whose streams flow while it runs, in both directions.

The first message is text, `{"exec": {…}, "stdin": bool, "tty": bool, "size": {"rows": r, "columns": c}}`; `exec` is
the body of the POST form without `stdin`, the rest may be left out. Then binary messages, the first
byte of which is 0 (stdin), 1 (stdout) or 2 (stderr), and texts, JSON objects of one member:

    client  {"eof": true}      nothing more comes on stdin
            {"credit": n}      room for n more bytes of output
            {"signal": name}, {"resize": {"rows": r, "columns": c}}
    server  {"credit": n}      room for n more bytes of stdin
            {"refused": {…}}   a signal or resize could not be done, and why; the command goes on
    last    {"exit": code or null, "timed_out": bool, "truncated": false}, or {"error": {…}} as in an envelope

Each side may send CREDIT bytes before it is given more; bytes count without the first one. A reader that gives no
credit slows the command, and a command that does not read slows its client. Whoever goes away kills the command.
What is not of this form ends the exchange with `invalid_body`, and the command with it.
"""

import asyncio
import json
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import structlog
from fastapi import APIRouter, WebSocket
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketDisconnect, WebSocketState

from sandbay.api import errors, strict
from sandbay.api.calls import Threads, project_of
from sandbay.api.wire.commands import ControlIn, StartIn, read_message
from sandbay.app.core import Core
from sandbay.app.sessions import find_session, run_command, running_allocation
from sandbay.domain.command import TerminalSize
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Exit, Steering, Stream
from sandbay.ports.records import SessionRecord

router = APIRouter()

CREDIT = 256 * 1024
"""Bytes that each side may send unasked."""

MESSAGE_BYTES = 1024 * 1024
"""The longest message that the server takes; it sends none longer than `PIECE_BYTES` and one."""

PIECE_BYTES = 64 * 1024

SERVED: Mapping[str, Any] = {
    "ws": "websockets-sansio",  # the other one reads on while nobody takes what it has read
    "ws_max_size": MESSAGE_BYTES,
    "ws_per_message_deflate": False,
    "ws_ping_timeout": 60.0,
}
"""Options of uvicorn without which this would not hold; for everybody who serves the application."""

_START_SECONDS = 30.0
_KINDS = {Stream.STDOUT: b"\1", Stream.STDERR: b"\2"}
_STDIN = 0
_MOST_CREDIT = 1 << 40

log = structlog.get_logger()


@router.websocket("/v1/sessions/{session}/exec")
async def exec_socket(websocket: WebSocket, session: str) -> None:
    """Run one command. What can be refused before it begins is refused in place of the upgrade."""
    core: Core = websocket.app.state.core
    room: Threads = websocket.app.state.threads
    request_id: str = websocket.state.request_id
    try:
        strict.check_query(websocket, frozenset())
        record = await run_in_threadpool(_look, core, websocket, session)
    except RefusedError as error:
        await websocket.send_denial_response(errors.refused(error.refusal, request_id))
        return
    with suppress(WebSocketDisconnect, OSError):  # both mean that the client has gone away
        await websocket.accept()
        await Conversation(websocket, core, record, room).hold()


def _look(core: Core, websocket: WebSocket, session: str) -> SessionRecord:
    if "\0" in session:
        raise RefusedError(Reason.NOT_FOUND, "there is no such Session")
    record = find_session(core, SessionId(session), project_of(websocket.state.actor))
    running_allocation(record)
    return record


class Conversation:
    """One command and its client."""

    def __init__(self, websocket: WebSocket, core: Core, record: SessionRecord, room: Threads) -> None:
        """Nothing runs yet."""
        self._socket, self._core, self._record, self._room = websocket, core, record, room
        self._request_id: str = websocket.state.request_id
        self._loop = asyncio.get_running_loop()
        self._cancel = threading.Event()
        self._stdin: queue.SimpleQueue[bytes] = queue.SimpleQueue()  # bounded by credit; empty bytes are its end
        self._stdin_credit = CREDIT
        self._stdin_open = True
        self._output = Credit(CREDIT)
        self._steering: Steering | None = None
        self._size: TerminalSize | None = None

    async def hold(self) -> None:
        """From the first message to the last. Raises `WebSocketDisconnect`."""
        try:
            with anyio.fail_after(_START_SECONDS):
                start = _start(await self._receive())
        except TimeoutError:
            await self._end(self._told(_invalid("the command did not come in time", "exec").refusal))
            return
        except RefusedError as error:
            await self._end(self._told(error.refusal))
            return
        work = asyncio.ensure_future(anyio.to_thread.run_sync(self._run, start, limiter=self._room.commands))
        listen = asyncio.ensure_future(self._listen())
        try:
            await asyncio.wait({work, listen}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._let_go(work, listen)
        end = await work
        fault = listen.exception() if listen.done() and not listen.cancelled() else None
        if isinstance(fault, RefusedError):
            end = self._told(fault.refusal)
        elif fault is not None:
            raise fault
        await self._end(end)

    def _let_go(self, work: "asyncio.Future[dict[str, Any]]", listen: "asyncio.Future[None]") -> None:
        """Whichever of the two is over, the other one has nothing left to do; and a cancelled exchange ends both."""
        if not work.done():
            self._cancel.set()
            self._output.close()
        listen.cancel()
        self._stdin.put(b"")

    async def _listen(self) -> None:
        while True:
            message = await self._receive()
            if isinstance(message, bytes):
                self._take_stdin(message)
            else:
                await self._control(message)

    async def _receive(self) -> bytes | str:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        data: bytes | str | None = message.get("bytes")
        return message["text"] if data is None else data

    def _take_stdin(self, message: bytes) -> None:
        if not message or message[0] != _STDIN:
            raise _invalid("a client's binary messages begin with 0, for stdin", "stdin")
        if not self._stdin_open:
            raise _invalid("stdin has ended", "stdin")
        size = len(message) - 1
        self._stdin_credit -= size
        if self._stdin_credit < 0:
            raise _invalid("there was no credit for that much of stdin", "stdin")
        if size:
            self._stdin.put(message[1:])

    async def _control(self, text: str) -> None:
        control = _control_of(text)
        if control.eof:
            self._stdin_open = False
            self._stdin.put(b"")
        if control.credit is not None:
            self._output.add(control.credit)
        if control.resize is not None or control.signal is not None:
            refusal = await run_in_threadpool(self._steer, control)
            if refusal is not None:
                await self._say({"refused": self._told(refusal)["error"]})

    def _steer(self, control: ControlIn) -> Refusal | None:
        number = control.number()
        if control.resize is not None:
            self._size = control.resize.size()
            if self._steering is not None:
                self._steering.resize(self._size)
        elif number is not None:
            if self._steering is None:
                return Refusal(Reason.NOT_RUNNING, "the command has not begun yet", "signal")
            self._steering.signal(number)
        return None

    def _on_start(self, steering: Steering) -> None:
        self._steering = steering
        if self._size is not None:  # that came before there was a terminal
            steering.resize(self._size)

    def _run(self, start: StartIn) -> dict[str, Any]:
        """In a thread of its own; the answer is the last message."""
        try:
            ended = run_command(
                self._core,
                self._record,
                start.command(),
                stdin=self._chunks() if start.stdin else (),
                emit=self._emit,
                cancel=self._cancel,
                on_start=self._on_start,
            )
        except RefusedError as error:
            return self._told(error.refusal)
        except anyio.BrokenResourceError:
            return {}  # nobody is there to be told
        except Exception:
            log.exception("command failed", request_id=self._request_id)
            return self._told(Refusal(Reason.INTERNAL, "a fault of ours; the log has it under this request id"))
        return _ended(ended)

    def _chunks(self) -> Iterator[bytes]:
        while chunk := self._stdin.get():
            yield chunk
            # It asks for the next one: this one has been taken.
            self._loop.call_soon_threadsafe(self._give_credit, len(chunk))

    def _give_credit(self, size: int) -> None:
        if self._stdin_open and not self._cancel.is_set():
            self._stdin_credit += size
            task = self._loop.create_task(self._try_to_say({"credit": size}))
            _TASKS.add(task)
            task.add_done_callback(_TASKS.discard)

    def _emit(self, stream: Stream, chunk: bytes) -> None:
        for start in range(0, len(chunk), PIECE_BYTES):
            piece = chunk[start : start + PIECE_BYTES]
            asyncio.run_coroutine_threadsafe(self._send_output(_KINDS[stream] + piece), self._loop).result()

    async def _send_output(self, message: bytes) -> None:
        await self._output.take(len(message) - 1)
        try:
            await self._socket.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise anyio.BrokenResourceError from error

    def _told(self, refusal: Refusal) -> dict[str, Any]:
        return errors.envelope(refusal, self._request_id)

    async def _say(self, message: dict[str, Any]) -> None:
        await self._socket.send_text(json.dumps(message))

    async def _try_to_say(self, message: dict[str, Any]) -> None:
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(WebSocketDisconnect, RuntimeError):
                await self._say(message)

    async def _end(self, message: dict[str, Any]) -> None:
        await self._say(message)
        await self._socket.close()


_TASKS: set["asyncio.Task[None]"] = set()
"""The loop itself keeps tasks weakly."""


class Credit:
    """How many bytes may still be sent. Of one event loop."""

    def __init__(self, size: int) -> None:
        """Begin with this many."""
        self._left = size
        self._closed = False
        self._waiting = asyncio.Event()

    def add(self, size: int) -> None:
        """May send more. Refuses a sum beyond reason."""
        self._left += size
        if self._left > _MOST_CREDIT:
            raise _invalid("that is more credit than anybody needs", "credit")
        self._waiting.set()

    def close(self) -> None:
        """There will be no more; whoever waits is told."""
        self._closed = True
        self._waiting.set()

    async def take(self, size: int) -> None:
        """Return when `size` bytes may be sent. Raises `BrokenResourceError` when it is closed."""
        while not self._closed:
            if self._left >= size:
                self._left -= size
                return
            self._waiting.clear()
            await self._waiting.wait()
        raise anyio.BrokenResourceError


def _ended(ended: Exit) -> dict[str, Any]:
    return {"exit": None if ended.timed_out else ended.code, "timed_out": ended.timed_out, "truncated": False}


def _start(message: bytes | str) -> StartIn:
    if isinstance(message, bytes):
        raise _invalid("the first message is the command, as text", "exec")
    try:
        return read_message(StartIn, strict.parse(message.encode()))
    except RequestValidationError as error:
        raise RefusedError.of(strict.refusal_of(error)) from error


def _control_of(text: str) -> ControlIn:
    try:
        return read_message(ControlIn, strict.parse(text.encode()))
    except RequestValidationError as error:
        raise RefusedError.of(strict.refusal_of(error)) from error


def _invalid(message: str, param: str) -> RefusedError:
    return RefusedError(Reason.INVALID_BODY, message, param=param)
