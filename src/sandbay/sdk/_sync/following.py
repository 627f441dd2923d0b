# Made by `./dev sdk` from _async/following.py, which is the one to edit.
"""Long work on its way: the installation tells how far it is while it reads, verifies or copies."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.errors import BadAnswerError, of_reason
from sandbay.sdk.events import MEDIA_TYPE, Reader
from sandbay.sdk.resources import Progress, ProgressCallback
from sandbay.sdk.transport import gone


def followed(transport: Transport, call: Call, ended: str, phase: str, progress: ProgressCallback | None) -> Any:
    """What the call comes to, the data of its last event `ended`; the callback is told how far `phase` is."""
    if progress is None:
        return transport.send(call)
    progress(Progress(phase))
    response = transport.open(replace(call, headers={**call.headers, "Accept": MEDIA_TYPE}))
    try:
        if not response.headers.get("content-type", "").startswith(MEDIA_TYPE):
            return _read(response.read())
        reader = Reader()
        for chunk in response.iter_bytes():
            for event in reader.feed(chunk):
                if event.kind == "progress":
                    progress(_progress(phase, event.data))
                elif event.kind == ended:
                    return event.data
                elif event.kind == "refused":
                    raise of_reason(event.data.get("error"))
    except httpx.TransportError as error:
        raise gone(transport.url, error, sent=True) from error
    finally:
        response.close()
    raise gone(transport.url, EOFError("it ended the stream of events"), sent=True)


def _progress(phase: str, data: Mapping[str, Any]) -> Progress:
    told = Progress.of({"phase": phase, **data})
    layers = data.get("layers")
    return told if layers is None else replace(told, phase=f"{phase} {layers} layer{'' if layers == 1 else 's'}")


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise BadAnswerError("the server's answer is no JSON", code="bad_answer") from error
