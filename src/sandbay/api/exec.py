"""`/v1/sessions/{id}/exec`: run a command, its output collected; streamed it is in `api.exec_socket`."""

import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive

from sandbay.api.calls import Name, TheActor, TheCore, Threads, attended, project_of
from sandbay.api.documented import RUNNING, refusing
from sandbay.api.strict import RoomyRoute
from sandbay.api.wire.commands import ExecIn, ExecOut
from sandbay.app.core import Core
from sandbay.app.sessions import find_session, run_command, running_allocation
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Emit, Exit, Stream
from sandbay.ports.records import SessionRecord

router = APIRouter(prefix="/v1/sessions/{session}/exec", route_class=RoomyRoute, tags=["sessions"])

KEPT_BYTES = 16 * 1024 * 1024
"""Of each stream, when output is collected."""

_REFUSALS = (
    *RUNNING,
    Reason.SECRET_UNKNOWN,
    *(Reason.USER_NOT_FOUND, Reason.NO_COMMAND, Reason.NO_SHELL, Reason.INVALID_WORKDIR),
    Reason.ABILITY_UNSUPPORTED,
)

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
    responses=refusing(*_REFUSALS),
)
async def post_exec(
    request: Request,
    core: TheCore,
    actor: TheActor,
    session: Name,
    body: ExecIn,
) -> ExecOut:
    """Run a command to its end. A time-out is an answer, with the output so far.

    The same path is a WebSocket, for streams that flow while the command runs: the first message is the text
    `{"exec": {…}, "stdin": bool, "tty": bool, "size": {"rows", "columns"}}` with this body (without `stdin`), then
    binary messages begin with 0 (stdin), 1 (stdout) or 2 (stderr), and texts are `{"eof": true}`, `{"credit": bytes}`,
    `{"resize": {"rows", "columns"}}` and `{"signal": "TERM"}`; the last one is `{"exit", "timed_out", "truncated"}` or
    an error's envelope. Each side may send 262144 bytes before it is given credit.
    """

    def look() -> SessionRecord:
        record = find_session(core, SessionId(session), project_of(actor))
        running_allocation(record)
        return record

    run = _runner(core, await run_in_threadpool(look), body)
    room: Threads = request.app.state.threads
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
