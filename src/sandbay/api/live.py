"""Server-sent events: what a reader does not know yet, again and again. Nothing is queued for anybody.

What is sent is read from rows when it is sent, so a slow reader or one that was away costs nothing meanwhile and is
told on from the id that it comes back with (`Last-Event-ID`). One that comes back to the end of a stream is answered
with 204: there will be no more.

A stream costs no thread while it waits, and ends after a while: who comes back shows its key again.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Protocol

import anyio
from fastapi import Header
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sandbay.api.calls import Threads, until_gone
from sandbay.api.documented import Answers
from sandbay.app.core import Core, Signal
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 10.0
"""A comment this often while there is nothing to tell: whoever hears nothing knows that the connection is gone."""

LIFE_SECONDS = 900.0
"""How long one stream goes on. Its reader comes back; a key that has been revoked does not."""

_LOOK_SECONDS = 1.0
"""Another Core on the same database changes things and nobody tells us; time alone changes some, too."""

_GAP_SECONDS = 0.2
_END_SECONDS = 5.0
_EVENTS_IN_A_PIECE = 200

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=128,
        pattern=r"^[\x20-\x7e]*$",
        description="The last id that was received: nothing is told again while all is as it was then.",
    ),
]


@dataclass(frozen=True, slots=True)
class News:
    """Events as they are sent, and whether there will be no more."""

    events: Sequence[bytes]
    final: bool = False


class View(Protocol):
    """What one reader looks at."""

    def news(self) -> News:
        """What the reader does not know yet. Called in a thread, one call at a time; refuses as a GET does."""


_EVENT = {
    "type": "object",
    "description": "One event; its data is JSON.",
    "properties": {
        "event": {"type": "string"},
        "id": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}


def streamed(what: str) -> Answers:
    """How a stream of events is documented."""
    content = {MEDIA_TYPE: {"schema": _EVENT}}
    return {200: {"content": content, "description": what}, 204: {"description": "Nothing more will happen to it."}}


def event(name: str, data: str, event_id: str | None = None) -> bytes:
    """One event; `data` is JSON in one line."""
    head = "" if event_id is None else f"id: {event_id}\n"
    return f"{head}event: {name}\ndata: {data}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How one thing is: the event's name, the thing's id and the event's data, JSON in one line."""

    event: str
    key: str
    data: str

    @property
    def digest(self) -> bytes:
        """Stands for exactly this."""
        return hashlib.sha256(f"{self.event}\n{self.key}\n{self.data}\n".encode()).digest()[:16]


class Snapshots:
    """Everything there is, thing by thing, again whenever one is different; what is there no longer is `gone`.

    What lay between two looks may be missed, what is never. The last event of each pass carries an id, which stands
    for everything that there was then: who comes back with it is told nothing while all is so, and otherwise `reset`
    (forget what you know) and everything.
    """

    def __init__(self, look: Callable[[], Sequence[Snapshot]], last: str | None) -> None:
        """`last` is the id that the reader came back with."""
        self._look, self._last = look, last
        self._known: dict[tuple[str, str], bytes] = {}
        self._looked = False

    def news(self) -> News:
        """The events that bring the reader to what there is now."""
        seen = self._look()
        now = {(it.event, it.key): it.digest for it in seen}
        looked, self._looked = self._looked, True
        now_id = hashlib.sha256(b"".join(sorted(now.values()))).hexdigest()[:32]
        told, self._known = self._known, now
        if now_id == self._last:
            return News(())
        news = [("reset", "{}")] if self._last is not None and not looked else []
        self._last = now_id
        news += [(it.event, it.data) for it in seen if told.get((it.event, it.key)) != it.digest]
        news += [("gone", f'{{"event":"{name}","id":"{key}"}}') for name, key in told if (name, key) not in now]
        return News([*(event(*it) for it in news[:-1]), *(event(*it, now_id) for it in news[-1:])])


class Live(Response):
    """Tells a reader the news of a view until they are final, the reader or this server goes, or the time is over."""

    media_type: str | None = MEDIA_TYPE

    def __init__(self, core: Core, room: Threads, view: View, *, resumable: bool = True) -> None:
        """Nothing is looked at before the answer begins. Unless readers can come back, they are told to the end."""
        self.status_code, self.background = 200, None
        self.body = b""
        self._changed, self._room, self._view = core.changed, room, view
        self._resumable = resumable
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses before the first byte what the view refuses, and with `limit_reached` when too many listen."""
        me = object()
        try:
            self._room.streams.acquire_on_behalf_of_nowait(me)
        except anyio.WouldBlock:
            most = int(self._room.streams.total_tokens)
            raise RefusedError(
                Reason.LIMIT_REACHED, "too many streams of events are open", details={"limit": most}
            ) from None
        try:
            await self._serve(scope, receive, send)
        finally:
            self._room.streams.release_on_behalf_of(me)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        with _woken(self._changed) as woken:
            first = await run_in_threadpool(self._view.news)
            if first.final and not first.events:
                await Response(status_code=204)(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
                with anyio.move_on_after(LIFE_SECONDS if self._resumable else None):
                    await self._tell(first, woken, send)
                with anyio.move_on_after(_END_SECONDS):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()

    async def _tell(self, news: News, woken: asyncio.Event, send: Send) -> None:
        said = anyio.current_time()
        while True:
            for start in range(0, len(news.events), _EVENTS_IN_A_PIECE):
                await _send(send, b"".join(news.events[start : start + _EVENTS_IN_A_PIECE]))
            if news.final or self._changed.closed:
                return
            if news.events:
                said = anyio.current_time()
            elif anyio.current_time() - said >= HEARTBEAT_SECONDS:
                await _send(send, b": still here\n\n")
                said = anyio.current_time()
            await anyio.sleep(_GAP_SECONDS)  # changes that come together are told together
            with anyio.move_on_after(_LOOK_SECONDS):
                await woken.wait()
            woken.clear()
            news = await run_in_threadpool(self._view.news)


@contextmanager
def _woken(changed: Signal) -> Iterator[asyncio.Event]:
    """An event of this loop that is set by a change in any thread."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended, and so has whoever waited
            loop.call_soon_threadsafe(event.set)

    with changed.told(wake):
        yield event


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    await until_gone(receive)
    scope.cancel()
