# Made by `./dev sdk` from _async/publishes.py, which is the one to edit.
"""Publishing: releases of images from folders."""

import os
import uuid
from collections.abc import Sequence
from typing import Unpack

import httpx

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk._sync.uploads import upload
from sandbay.sdk.client import said
from sandbay.sdk.errors import of_reason
from sandbay.sdk.events import Reader
from sandbay.sdk.folder import FolderTar, commit_of
from sandbay.sdk.publishes import LogCallback, Publish, Publishing, PublishPlan
from sandbay.sdk.resources import ProgressCallback
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import work

_PUBLISHES = "/core/v1/sandbox/publishes"
_PATIENCE = 60.0
_SILENCE = 60.0


class Publishes:
    """The installation's publishes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def start(
        self,
        folder: str | os.PathLike[str],
        *,
        promote: str | None = None,
        progress: ProgressCallback | None = None,
        **asked: Unpack[Publishing],
    ) -> Publish:
        """Upload a folder and have it published, by its image.toml or by a plain `dockerfile` in it under `name`.

        It goes on by itself; `follow` waits for its end. Raises `RequestError` (invalid_body), `ContentError`,
        `UnknownReferenceError`, `ChoosingError`.
        """
        body = {
            **asked,
            "upload": self._sent(folder, progress),
            "promote": promote,
            "source_commit": work(commit_of, folder),
        }
        key = {"Idempotency-Key": str(uuid.uuid4())}
        call = Call("POST", _PUBLISHES, json=said(body), headers=key, repeatable=True, read_timeout=600.0)
        return Publish.of(self._transport.send(call))

    def plan(
        self,
        folder: str | os.PathLike[str],
        *,
        progress: ProgressCallback | None = None,
        **asked: Unpack[Publishing],
    ) -> PublishPlan:
        """What publishing the folder would do now. Raises as `start` does."""
        body = {**asked, "upload": self._sent(folder, progress)}
        call = Call("POST", f"{_PUBLISHES}/plan", json=said(body), repeatable=True, read_timeout=600.0)
        return PublishPlan.of(self._transport.send(call))

    def get(self, publish: str) -> Publish:
        """One publish. Raises `UnknownReferenceError` (not_found)."""
        call = Call("GET", f"{_PUBLISHES}/{segment(publish)}", patience=_PATIENCE)
        return Publish.of(self._transport.send(call))

    def list(self, image: str | None = None) -> Sequence[Publish]:
        """Newest first; of one image or of all."""
        return [Publish.of(item) for item in self._transport.pages(_PUBLISHES, {"image": image})]

    def cancel(self, publish: str) -> Publish:
        """End it as soon as its build has stopped. Raises `StateError` (already_ended)."""
        call = Call("POST", f"{_PUBLISHES}/{segment(publish)}/cancel", repeatable=True)
        return Publish.of(self._transport.send(call))

    def follow(self, publish: str, *, log: LogCallback | None = None) -> Publish:
        """Wait until it is done, across interruptions of the connection; `log` is told what its build says.

        Raises why it failed: `RequestError` (build_failed), `StateError` (cancelled), the fault of its release, ….
        """
        last = "0"
        while True:
            last = self._listen(publish, last, log)
            now = self.get(publish)
            if now.phase == "done":
                return now
            if now.ended:
                raise of_reason(now.raw.get("fault"))

    def _listen(self, publish: str, last: str, log: LogCallback | None) -> str:
        """Until the stream ends, or breaks off: whoever asks again goes on from the id that this returns."""
        reader = Reader(last)
        call = Call(
            "GET",
            f"{_PUBLISHES}/{segment(publish)}/log",
            headers={"Last-Event-ID": last},
            read_timeout=_SILENCE,
            patience=_PATIENCE,
        )
        response = self._transport.open(call)
        try:
            for chunk in response.iter_bytes():
                for event in reader.feed(chunk):
                    if event.kind == "log" and log is not None:
                        log(str(event.data["text"]))
        except (httpx.TransportError, httpx.StreamError):
            pass
        finally:
            response.close()
        return reader.last_id or last

    def _sent(self, folder: str | os.PathLike[str], progress: ProgressCallback | None) -> str:
        return upload(self._transport, work(FolderTar, folder), progress)
