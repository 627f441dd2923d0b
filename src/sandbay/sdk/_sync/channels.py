# Made by `./dev sdk` from _async/channels.py, which is the one to edit.
"""Channels of images, for administrators: promote, roll back, and what was before."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.catalog import STABLE
from sandbay.sdk.channels import ChannelMove
from sandbay.sdk.client import said
from sandbay.sdk.errors import UnknownReferenceError
from sandbay.sdk.references import parse
from sandbay.sdk.releases import Release
from sandbay.sdk.resources import Channel
from sandbay.sdk.transport import segment

IMAGES = "/core/v1/sandbox/images"


class Channels(ABC):
    """The part of the catalog that moves."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @abstractmethod
    def release(self, reference: str) -> Release:
        """The release that a reference means now."""

    def promote(self, reference: str, *, to: str = STABLE, why: str | None = None) -> Channel:
        """Point a channel at a release. Sessions that live keep theirs.

        Raises `UnknownReferenceError`, `ChoosingError` when it is not active, `StateError` (revision_stale).
        """
        asked = parse(reference)
        if asked.is_whole_image:
            message = f"say which release of {asked.name} to promote, as {asked.name}:7"
            raise UnknownReferenceError(message, code="invalid_reference", param="reference")
        number = asked.number if asked.number is not None else (self.release(reference)).number
        call = Call("PUT", _channel(asked.name, to), json=said({"release": number, "why": why}))
        return Channel.of(self._transport.send(call))

    def rollback(self, name: str, *, channel: str = STABLE, why: str | None = None) -> Channel:
        """Point a channel at the release before, in one write. A second one takes the first back.

        Raises `UnknownReferenceError` (release_unknown) where nothing was before, and as `promote` does.
        """
        call = Call("POST", f"{_channel(name, channel)}/rollback", json=said({"why": why}))
        return Channel.of(self._transport.send(call))

    def history(self, name: str, *, channel: str = STABLE, limit: int | None = None) -> Sequence[ChannelMove]:
        """Who pointed a channel where, newest first: all of it, or so many moves."""
        found: list[ChannelMove] = []
        for item in self._transport.pages(f"{_channel(name, channel)}/history"):
            if len(found) == limit:
                break
            found.append(ChannelMove.of(item))
        return found


def _channel(name: str, channel: str) -> str:
    return f"{IMAGES}/{segment(name)}/channels/{segment(channel)}"
