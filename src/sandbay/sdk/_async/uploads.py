"""Bytes on their way to the installation."""

from collections.abc import AsyncIterator, Iterator
from typing import Protocol

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.resources import Progress, ProgressCallback
from sandbay.sdk.twins import async_each


class AsyncContent(Protocol):
    """Bytes that can be made anew; `size` is how many."""

    size: int

    def __iter__(self) -> Iterator[bytes]: ...


async def async_upload(transport: AsyncTransport, content: AsyncContent, progress: ProgressCallback | None) -> str:
    """Send it; the upload's id."""
    call = AsyncCall(
        "POST",
        "/core/v1/sandbox/uploads",
        body=lambda: _told(content, progress),
        headers={"Content-Type": "application/octet-stream", "Content-Length": str(content.size)},
        read_timeout=600.0,
    )
    return str((await transport.send(call))["id"])


async def _told(content: AsyncContent, progress: ProgressCallback | None) -> AsyncIterator[bytes]:
    """The content's pieces; the callback is told of each that was taken."""
    done = 0
    async for piece in async_each(content):
        yield piece
        done += len(piece)
        if progress is not None:
            progress(Progress("uploading", done, content.size))
