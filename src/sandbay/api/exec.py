"""`/v1/sessions/{id}/exec`: run a command, its output collected or streamed in frames.

A frame is one byte of kind (1 stdout, 2 stderr, 3 end), four bytes of length (big-endian), and as many bytes.
The end is JSON: `{"exit_code", "timed_out"}`, or an error's envelope. Whoever goes away kills the command.
"""

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from sandbay.api import errors
from sandbay.api.calls import Name, TheActor, TheCore, Threads, attended, project_of, until_gone
from sandbay.api.documented import RUNNING, bytes_of, refusing
from sandbay.api.strict import RoomyRoute
from sandbay.api.wire.commands import ExecIn, ExecOut
from sandbay.app.core import Core
from sandbay.app.sessions import find_session, run_command, running_allocation
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Emit, Exit, Stream
from sandbay.ports.records import SessionRecord

router = APIRouter(prefix="/v1/sessions/{session}/exec", route_class=RoomyRoute, tags=["sessions"])

MEDIA_TYPE = "application/vnd.sandbay.exec-stream"
KEPT_BYTES = 16 * 1024 * 1024
"""Of each stream, when output is collected."""

_FRAME_BYTES = 1024 * 1024
_FRAMES_AHEAD = 4
_KINDS = {Stream.STDOUT: 1, Stream.STDERR: 2}
_END = 3
_REFUSALS = (
    *RUNNING,
    *(Reason.USER_NOT_FOUND, Reason.NO_COMMAND, Reason.NO_SHELL, Reason.INVALID_WORKDIR),
    Reason.ABILITY_UNSUPPORTED,
)

log = structlog.get_logger()

Run = Callable[[Emit, threading.Event], Exit]


@dataclass
class Kept:
    """The beginning of a stream, and how long it was in all."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, chunk: bytes) -> None:
        """Keep what there is room for."""
        self.data += chunk[: max(KEPT_BYTES - len(self.data), 0)]
        self.size += len(chunk)


@router.post(
    "",
    response_model=ExecOut,
    responses=bytes_of(MEDIA_TYPE) | refusing(*_REFUSALS),
)
async def post_exec(
    request: Request,
    core: TheCore,
    actor: TheActor,
    session: Name,
    body: ExecIn,
    accept: Annotated[
        str, Header(description=f"`{MEDIA_TYPE}` for the streamed form.", max_length=1024)
    ] = "application/json",
) -> ExecOut | Response:
    """Run a command to its end. A time-out is an answer, with the output so far."""

    def look() -> SessionRecord:
        record = find_session(core, SessionId(session), project_of(actor))
        running_allocation(record)
        return record

    run = _runner(core, await run_in_threadpool(look), body)
    room: Threads = request.app.state.threads
    if MEDIA_TYPE in accept:
        return FrameStream(run, room, request.state.request_id)
    return await _collected(run, room, request.receive)


def _runner(core: Core, record: SessionRecord, body: ExecIn) -> Run:
    def run(emit: Emit, cancel: threading.Event) -> Exit:
        stdin = [body.stdin] if body.stdin else []
        return run_command(core, record, body.command(), stdin=stdin, emit=emit, cancel=cancel)

    return run


def _code(ended: Exit) -> int | None:
    return None if ended.timed_out else ended.code


async def _collected(run: Run, room: Threads, receive: Receive) -> ExecOut:
    kept = {stream: Kept() for stream in Stream}
    ended = await attended(
        receive, lambda gone: run(lambda stream, chunk: kept[stream].add(chunk), gone), room.commands
    )
    out, err = kept[Stream.STDOUT], kept[Stream.STDERR]
    return ExecOut(
        exit_code=_code(ended),
        timed_out=ended.timed_out,
        stdout=b64encode(out.data).decode(),
        stderr=b64encode(err.data).decode(),
        stdout_bytes=out.size,
        stderr_bytes=err.size,
        stdout_truncated=out.size > len(out.data),
        stderr_truncated=err.size > len(err.data),
    )


def frame(kind: int, payload: bytes) -> bytes:
    """One frame."""
    return bytes([kind]) + len(payload).to_bytes(4, "big") + payload


def _pieces(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), _FRAME_BYTES):
        yield chunk[start : start + _FRAME_BYTES]


class FrameStream(Response):
    """Runs a command while it is sent. A slow reader slows the command; one that goes away ends it."""

    media_type: str | None = MEDIA_TYPE

    def __init__(self, run: Run, room: Threads, request_id: str) -> None:
        """Nothing runs before the answer begins."""
        self.status_code, self.background = 200, None
        self.body = b""
        self._run, self._room, self._request_id = run, room, request_id
        self.init_headers({"Cache-Control": "no-store"})
        del self.headers["content-length"]

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until the command or the client is gone."""
        sender, receiver = anyio.create_memory_object_stream[bytes](_FRAMES_AHEAD)
        cancel = threading.Event()
        async with anyio.create_task_group() as tasks:
            try:
                tasks.start_soon(self._produce, sender, cancel)
                tasks.start_soon(self._watch, receive, tasks.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._send(receiver, send)
                tasks.cancel_scope.cancel()
            finally:
                cancel.set()
                receiver.close()  # a command that waits for room to write is told now

    async def _send(self, receiver: MemoryObjectReceiveStream[bytes], send: Send) -> None:
        async for data in receiver:
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        await until_gone(receive)
        scope.cancel()

    async def _produce(self, sender: MemoryObjectSendStream[bytes], cancel: threading.Event) -> None:
        loop = asyncio.get_running_loop()

        def put(data: bytes) -> None:
            asyncio.run_coroutine_threadsafe(sender.send(data), loop).result()

        def emit(stream: Stream, chunk: bytes) -> None:
            for piece in _pieces(chunk):
                put(frame(_KINDS[stream], piece))

        def work() -> None:
            end = self._end(emit, cancel)
            if not cancel.is_set():
                put(frame(_END, json.dumps(end).encode()))

        async with sender:
            await anyio.to_thread.run_sync(work, limiter=self._room.commands)

    def _end(self, emit: Emit, cancel: threading.Event) -> dict[str, object]:
        try:
            ended = self._run(emit, cancel)
        except RefusedError as error:
            return errors.envelope(error.refusal, self._request_id)
        except anyio.BrokenResourceError:
            return {}  # nobody is there to be told
        except Exception:
            log.exception("command failed", request_id=self._request_id)
            refusal = Refusal(Reason.INTERNAL, "a fault of ours; the log has it under this request id")
            return errors.envelope(refusal, self._request_id)
        return {"exit_code": _code(ended), "timed_out": ended.timed_out}
