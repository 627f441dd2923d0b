"""Following what happens: a connection that breaks is made again, and tells only what has not been told."""

from collections.abc import AsyncIterator

import httpx

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.events import MEDIA_TYPE, SILENCE, Event, Reader, nonsense

_NO_MORE = 204
_PAUSE = 0.5


async def follow(transport: AsyncTransport, path: str) -> AsyncIterator[Event]:
    """Events of a path until the server says that there will be no more. Raises what a GET raises."""
    last: str | None = None
    while True:
        headers = {"Accept": MEDIA_TYPE} if last is None else {"Accept": MEDIA_TYPE, "Last-Event-ID": last}
        response = await transport.open(AsyncCall("GET", path, headers=headers, read_timeout=SILENCE))
        try:
            if response.status_code == _NO_MORE:
                return
            if response.headers.get("content-type", "").partition(";")[0].strip() != MEDIA_TYPE:
                raise nonsense()
            reader = Reader(last)
            async for data in response.aiter_raw():
                for event in reader.feed(data):
                    last = reader.last_id
                    yield event
        except httpx.TransportError:
            await transport.sleep(_PAUSE)
        finally:
            await response.aclose()
