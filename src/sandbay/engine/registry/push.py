"""Blobs and manifests on their way into one repository.

A blob goes in pieces. After a fault the registry is asked how much it has, and the rest is sent; where it has forgotten
the upload, as some do whenever a piece was cut, all is sent anew. It shows nothing of an upload before that is closed
with the digest of the whole.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import BinaryIO

import httpx

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.registry.client import Ask, RegistryClient
from sandbay.engine.registry.refusals import PassingError

PIECE = 8 * 1024**2
"""Bytes of a piece. Stores behind registries want at least 5 MiB."""

_RANGE = re.compile(r"(?:bytes=)?0-([0-9]{1,18})")
_DONE = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT})
_LOST = Reason.REGISTRY_UNREACHABLE


def push_blob(client: RegistryClient, digest: str, size: int, file: BinaryIO, piece: int = PIECE) -> None:
    """Push a blob: all bytes of a file that can be read again. Refuses by the group transfer.

    When it is refused the registry has nothing of it, or what nobody can see.
    """
    upload = _Upload(client, digest, size, file, piece)
    best = tries = 0
    try:
        while True:
            try:
                upload.go_on()
            except PassingError as fault:
                tries = 1 if upload.has > best else tries + 1
                best = max(best, upload.has)
                client.pause(fault, tries)
                if client.size(f"blobs/{digest}") == size:
                    return  # it was taken, and the answer got lost
                upload.look()
            else:
                return
    except BaseException:
        upload.cancel()
        raise


def push_manifest(client: RegistryClient, reference: str, media_type: str, data: bytes) -> None:
    """Push a manifest under a tag or its digest. Repeating it is harmless. Refuses by the group transfer."""
    headers = {"Content-Type": media_type}
    ask = Ask(f"manifests/{reference}", Reason.REPOSITORY_MISSING, headers, method="PUT", content=data, good=_DONE)
    client.patiently(lambda: _closed(client, ask))


def _closed(client: RegistryClient, ask: Ask) -> None:
    with client.open(ask):
        return


class _Upload:
    """One blob on its way. `has` is how many bytes the registry has of it."""

    def __init__(self, client: RegistryClient, digest: str, size: int, file: BinaryIO, piece: int) -> None:
        self._client, self._digest, self._size = client, digest, size
        self._file, self._piece = file, piece
        self._at: httpx.URL | None = None
        self.has = 0

    def go_on(self) -> None:
        """Send what is left; the last piece closes it."""
        while True:
            self._file.seek(self.has)
            data = self._file.read(self._piece)
            if self.has + len(data) >= self._size:
                self._send("PUT", data, {"digest": self._digest})
                return
            self._send("PATCH", data, {})

    def look(self) -> None:
        """Find out how much has arrived; begin anew where the registry knows nothing of it any more."""
        if self._at is None:
            return
        at = self._at
        try:
            self.has = self._client.patiently(lambda: self._stands_at(at))
        except PassingError:
            raise
        except RefusedError:
            self._at, self.has = None, 0

    def cancel(self) -> None:
        """Tell the registry to forget it. Where that fails it does so in its own time."""
        if self._at is not None:
            with suppress(RefusedError):
                _closed(self._client, Ask(self._at, _LOST, method="DELETE", good=_DONE))

    def _send(self, method: str, data: bytes, params: Mapping[str, str]) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        if data:
            headers["Content-Range"] = f"{self.has}-{self.has + len(data) - 1}"
        where = self._begun().copy_merge_params(params)
        with self._client.open(Ask(where, _LOST, headers, method=method, content=data, good=_DONE)) as answer:
            self.has += len(data)
            if method == "PATCH":
                self._at = self._client.named(answer)

    def _begun(self) -> httpx.URL:
        if self._at is None:
            ask = Ask("blobs/uploads/", Reason.REPOSITORY_MISSING, method="POST", content=b"", good=_DONE)
            with self._client.open(ask) as answer:
                self._at = self._client.named(answer)
        return self._at

    def _stands_at(self, at: httpx.URL) -> int:
        with self._client.open(Ask(at, _LOST, good=_DONE)) as answer:
            if "location" in answer.headers:
                self._at = self._client.named(answer)
            said = _RANGE.fullmatch(answer.headers.get("range", ""))
            # Of an upload without bytes registries say `0-0`, too: then none is the safer guess.
            return min(int(said[1]) + 1, self._size) if said and said[1] != "0" else 0
