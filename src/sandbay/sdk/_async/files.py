"""The files of one sandbox. Relative paths start at the sandbox's `/workspace`."""

import os
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx

from sandbay.sdk._async import copy_in, copy_out
from sandbay.sdk._async.transport import AsyncBody, AsyncCall, AsyncTransport
from sandbay.sdk.copying import Copied
from sandbay.sdk.errors import TransferError
from sandbay.sdk.resources import FileEntry, ProgressCallback
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import AsyncPieces

Path = str | os.PathLike[str]
_SLOW = 600.0


class AsyncFiles:
    """Raises `RequestError` (path_not_found, path_invalid), `StateError` (not_running), `RoomError` (no_space)."""

    def __init__(self, transport: AsyncTransport, session: str) -> None:
        self._transport, self._base = transport, f"/v1/sessions/{segment(session)}/files"

    async def read(self, path: str) -> bytes:
        """A file's bytes, all at once."""
        return b"".join([chunk async for chunk in self.chunks(path)])

    async def chunks(self, path: str) -> AsyncIterator[bytes]:
        """A file's bytes in pieces. Raises `stream_lost` when they stop too early."""
        response = await self._transport.open(AsyncCall("GET", f"{self._base}/content", params={"path": path}))
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except (httpx.TransportError, httpx.StreamError) as error:
            raise TransferError(f"the bytes of {path} broke off", code="stream_lost") from error
        finally:
            await response.aclose()

    async def write(self, path: str, data: bytes | str | AsyncPieces, *, mode: int | None = None) -> None:
        """Replace a file in one step; missing parents are made. Text is written as UTF-8.

        Pieces are taken from `data` once, so then a lost connection is not tried again.
        """
        if isinstance(data, str):
            data = data.encode()
        if isinstance(data, bytes):
            whole = data
            await self.send(path, lambda: [whole], mode=mode)
        else:
            pieces = data
            await self.send(path, lambda: pieces, mode=mode, repeatable=False)

    async def send(self, path: str, body: AsyncBody, *, mode: int | None = None, repeatable: bool = True) -> None:
        """As `write`, with bytes that can be made anew when they have to be sent again."""
        await self._transport.send(
            AsyncCall(
                "PUT",
                f"{self._base}/content",
                params={"path": path, "mode": mode},
                body=body,
                headers={"Content-Type": "application/octet-stream"},
                repeatable=repeatable,
                read_timeout=_SLOW,
            )
        )

    async def list(self, path: str = ".") -> Sequence[FileEntry]:
        """What is in a folder."""
        return [FileEntry.of(item) async for item in self._transport.pages(self._base, {"path": path})]

    async def stat(self, path: str) -> FileEntry:
        """What is at a path; a link at its end is not followed."""
        return FileEntry.of(await self._transport.send(AsyncCall("GET", f"{self._base}/stat", params={"path": path})))

    async def make_folder(self, path: str) -> None:
        """Make a folder and its missing parents; one that is there is fine."""
        await self._post("folder", params={"path": path}, repeatable=True)

    async def move(self, source: str, target: str) -> None:
        """Rename within the sandbox."""
        await self._post("move", json={"source": source, "target": target})

    async def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder with all below it."""
        await self._transport.send(AsyncCall("DELETE", self._base, params={"path": path}, repeatable=False))

    async def copy_in(self, source: Path, target: str, *, progress: ProgressCallback | None = None) -> Copied:
        """Copy a file or folder of this machine into the sandbox; links in it are not followed."""
        return await copy_in.copy_in(self, source, target, progress)

    async def copy_out(self, source: str, target: Path, *, progress: ProgressCallback | None = None) -> Copied:
        """Copy a file or folder of the sandbox to this machine; links are left out."""
        return await copy_out.copy_out(self, source, target, progress)

    async def _post(self, what: str, **call: Any) -> None:
        await self._transport.send(AsyncCall("POST", f"{self._base}/{what}", **call))
