# Made by `./dev sdk` from _async/uploads.py, which is the one to edit.
"""Bytes on their way to the installation."""

from collections.abc import Iterator
from typing import Protocol

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.resources import Progress, ProgressCallback
from sandbay.sdk.twins import each


class Content(Protocol):
    """Bytes that can be made anew; `size` is how many."""

    size: int

    def __iter__(self) -> Iterator[bytes]: ...


def upload(transport: Transport, content: Content, progress: ProgressCallback | None) -> str:
    """Send it; the upload's id."""
    call = Call(
        "POST",
        "/core/v1/sandbox/uploads",
        body=lambda: _told(content, progress),
        headers={"Content-Type": "application/octet-stream", "Content-Length": str(content.size)},
        read_timeout=600.0,
    )
    return str((transport.send(call))["id"])


def _told(content: Content, progress: ProgressCallback | None) -> Iterator[bytes]:
    """The content's pieces; the callback is told of each that was taken."""
    done = 0
    for piece in each(content):
        yield piece
        done += len(piece)
        if progress is not None:
            progress(Progress("uploading", done, content.size))
