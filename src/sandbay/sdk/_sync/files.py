# Made by `./dev sdk` from _async/files.py, which is the one to edit.
"""The files of one sandbox. Relative paths start at the sandbox's `/workspace`."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from sandbay.sdk._sync import copy_in, copy_out
from sandbay.sdk._sync.transport import Body, Call, Transport
from sandbay.sdk.copying import Copied
from sandbay.sdk.errors import TransferError
from sandbay.sdk.resources import FileEntry, ProgressCallback
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import Pieces

Path = str | os.PathLike[str]
_SLOW = 600.0


class Files:
    """Raises `RequestError` (path_not_found, path_invalid), `StateError` (not_running), `RoomError` (no_space)."""

    def __init__(self, transport: Transport, session: str) -> None:
        self._transport, self._base = transport, f"/v1/sessions/{segment(session)}/files"

    def read(self, path: str) -> bytes:
        """A file's bytes, all at once."""
        return b"".join(list(self.chunks(path)))

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file's bytes in pieces. Raises `stream_lost` when they stop too early."""
        response = self._transport.open(Call("GET", f"{self._base}/content", params={"path": path}))
        try:
            yield from response.iter_bytes()
        except (httpx.TransportError, httpx.StreamError) as error:
            raise TransferError(f"the bytes of {path} broke off", code="stream_lost") from error
        finally:
            response.close()

    def write(self, path: str, data: bytes | str | Pieces, *, mode: int | None = None) -> None:
        """Replace a file in one step; missing parents are made. Text is written as UTF-8.

        Pieces are taken from `data` once, so then a lost connection is not tried again.
        """
        if isinstance(data, str):
            data = data.encode()
        if isinstance(data, bytes):
            whole = data
            self.send(path, lambda: [whole], mode=mode)
        else:
            pieces = data
            self.send(path, lambda: pieces, mode=mode, repeatable=False)

    def send(self, path: str, body: Body, *, mode: int | None = None, repeatable: bool = True) -> None:
        """As `write`, with bytes that can be made anew when they have to be sent again."""
        self._transport.send(
            Call(
                "PUT",
                f"{self._base}/content",
                params={"path": path, "mode": mode},
                body=body,
                headers={"Content-Type": "application/octet-stream"},
                repeatable=repeatable,
                read_timeout=_SLOW,
            )
        )

    def list(self, path: str = ".") -> Sequence[FileEntry]:
        """What is in a folder."""
        return [FileEntry.of(item) for item in self._transport.pages(self._base, {"path": path})]

    def stat(self, path: str) -> FileEntry:
        """What is at a path; a link at its end is not followed."""
        return FileEntry.of(self._transport.send(Call("GET", f"{self._base}/stat", params={"path": path})))

    def make_folder(self, path: str) -> None:
        """Make a folder and its missing parents; one that is there is fine."""
        self._post("folder", params={"path": path}, repeatable=True)

    def move(self, source: str, target: str) -> None:
        """Rename within the sandbox."""
        self._post("move", json={"source": source, "target": target})

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder with all below it."""
        self._transport.send(Call("DELETE", self._base, params={"path": path}, repeatable=False))

    def copy_in(self, source: Path, target: str, *, progress: ProgressCallback | None = None) -> Copied:
        """Copy a file or folder of this machine into the sandbox; links in it are not followed."""
        return copy_in.copy_in(self, source, target, progress)

    def copy_out(self, source: str, target: Path, *, progress: ProgressCallback | None = None) -> Copied:
        """Copy a file or folder of the sandbox to this machine; links are left out."""
        return copy_out.copy_out(self, source, target, progress)

    def _post(self, what: str, **call: Any) -> None:
        self._transport.send(Call("POST", f"{self._base}/{what}", **call))
