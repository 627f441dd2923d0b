"""What endpoints are handed: Core, who asks, the page; and threads for those that wait, so that others need not."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, TypeVar

import anyio
import anyio.to_thread
from fastapi import Depends, FastAPI, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from sandbay.app.core import Actor, Core
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ProjectId
from sandbay.domain.reasons import Reason
from sandbay.ports.records import Page

SHORT_CALLS = 200
WAITING_CALLS = 1_000
COMMANDS = 1_000
STREAMS = 1_000
_CHUNK = 1024 * 1024

T = TypeVar("T")


@dataclass(frozen=True)
class Threads:
    """Separate threads for calls that wait and for commands: however many there are, short calls go on.

    streams: how many live views there may be; they wait without a thread.
    """

    waiting: anyio.CapacityLimiter
    commands: anyio.CapacityLimiter
    streams: anyio.CapacityLimiter


@asynccontextmanager
async def threads(app: FastAPI) -> AsyncIterator[None]:
    """The application's lifespan."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = SHORT_CALLS
    waiting, commands, streams = (anyio.CapacityLimiter(room) for room in (WAITING_CALLS, COMMANDS, STREAMS))
    app.state.threads = Threads(waiting, commands, streams)
    yield


async def core_of(request: Request) -> Core:
    """The Core that this application serves."""
    core: Core = request.app.state.core
    return core


async def actor_of(request: Request) -> Actor:
    """Who asks; `api.middleware.Keys` has found out."""
    actor: Actor = request.state.actor
    return actor


async def page_of(
    limit: Annotated[int, Query(ge=1, le=500, description="How many items at most.")] = 100,
    after: Annotated[
        str | None, Query(min_length=1, max_length=1024, pattern=r"^[^\x00]*$", description="`next` of the last page.")
    ] = None,
) -> Page:
    """Which page of a list."""
    return Page(after, limit)


TheCore = Annotated[Core, Depends(core_of)]
TheActor = Annotated[Actor, Depends(actor_of)]
ThePage = Annotated[Page, Depends(page_of)]
Name = Annotated[str, Path(min_length=1, max_length=512, pattern=r"^[^\x00]+$", description="A name or an id.")]
Number = Annotated[int, Path(ge=1, le=999_999_999, description="A release's number.")]


def project_of(actor: Actor) -> ProjectId:
    """The project of a project key."""
    if actor.project is None:
        raise RefusedError(Reason.FORBIDDEN, "this needs a project key")
    return actor.project


async def until_gone(receive: Receive) -> None:
    """Return when the client has gone away; what is left of its body is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def attended(
    receive: Receive,
    call: Callable[[threading.Event], T],
    room: anyio.CapacityLimiter,
    wake: Callable[[], None] = lambda: None,
) -> T:
    """Run a call in a thread of `room`. Its event is set when nobody waits for the answer any more.

    That is when the client goes away (then `ClientDisconnect` is raised) or this server does; `wake` follows.
    """
    gone = threading.Event()
    work = asyncio.ensure_future(anyio.to_thread.run_sync(call, gone, limiter=room))
    watch = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watch.cancel()
        answered = work.done()
        if not answered:
            gone.set()
            wake()
    answer = await work
    if not answered:
        raise ClientDisconnect
    return answer


async def waiting(request: Request, call: Callable[[threading.Event], T]) -> T:
    """Run a call that may wait for Core to change, in a thread that no short call needs."""
    core: Core = request.app.state.core
    room: Threads = request.app.state.threads
    return await attended(request.receive, call, room.waiting, core.changed.set)


class BodyChunks:
    """The request's body for a thread: it is received as it is asked for, never ahead."""

    def __init__(self, request: Request, loop: asyncio.AbstractEventLoop) -> None:
        """Made by `body_chunks`."""
        self._loop, self._stream = loop, request.stream()

    def __iter__(self) -> Iterator[bytes]:
        """Raises `ClientDisconnect` when the client goes away before its end."""
        while chunk := asyncio.run_coroutine_threadsafe(self._more(), self._loop).result():
            yield chunk

    async def _more(self) -> bytes:
        """Several small pieces at once: each way between the threads costs."""
        pieces, size = [], 0
        async for piece in self._stream:
            pieces.append(piece)
            size += len(piece)
            if size >= _CHUNK:
                break
        return b"".join(pieces)


async def body_chunks(request: Request) -> BodyChunks:
    """Dependency of endpoints that take bytes."""
    return BodyChunks(request, asyncio.get_running_loop())


TheBody = Annotated[BodyChunks, Depends(body_chunks)]
BYTES_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""How an endpoint that takes `TheBody` is documented."""
