# Made by `./dev sdk` from _async/channels.py, which is the one to edit.
"""Channels of images, for administrators: promote, roll back, and what was before."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.catalog import STABLE
from sandbay.sdk.channels import ChannelMove, Promotion, settled
from sandbay.sdk.client import said
from sandbay.sdk.errors import UnknownReferenceError
from sandbay.sdk.references import parse
from sandbay.sdk.releases import Release
from sandbay.sdk.resources import Channel, ProgressCallback
from sandbay.sdk.transport import segment

IMAGES = "/core/v1/sandbox/images"
_PATIENCE = 60.0
_PAUSE = 1.0


class Channels(ABC):
    """The part of the catalog that moves."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @abstractmethod
    def release(self, reference: str) -> Release:
        """The release that a reference means now."""

    def promote(self, reference: str, *, to: str = STABLE, why: str | None = None, force: bool = False) -> Channel:
        """Point a channel at a release now. Sessions that live keep theirs.

        Raises `UnknownReferenceError`, `StateError` (revision_stale), and `ChoosingError` when it is not active or when
        somebody would have no image any more: `details["lost"]` tells who and why; `force` moves all the same.
        """
        name, number = self._promoted(reference)
        body = {"release": number, "why": why, "force": force or None}
        call = Call("PUT", _channel(name, to), json=said(body))
        return Channel.of(self._transport.send(call))

    def promote_when_ready(
        self,
        reference: str,
        *,
        to: str = STABLE,
        nodes: int | None = None,
        deadline: int | None = None,
        why: str | None = None,
        force: bool = False,
    ) -> Promotion:
        """Point a channel at a release as soon as it is ready on so many nodes (None: on every one that can run it).

        `deadline` is in seconds; the installation's is an hour. The answer comes at once; `wait_settled` waits. Raises
        as `promote` does, and `StateError` (in_use) while another promotion of the channel is under way.
        """
        name, number = self._promoted(reference)
        asked = {"release": number, "channel": to, "nodes": nodes, "deadline_seconds": deadline}
        body = {**asked, "why": why, "force": force or None}
        return Promotion.of(self._transport.send(Call("POST", _promotions(name), json=said(body))))

    def wait_settled(self, promotion: Promotion, *, progress: ProgressCallback | None = None) -> Promotion:
        """Wait until a promotion has settled. Raises why it failed, `StateError` (cancelled) when it was aborted."""
        path = f"{_promotions(promotion.image)}/{segment(promotion.id)}"
        while True:
            now = Promotion.of(self._transport.send(Call("GET", path, patience=_PATIENCE)))
            if now.outcome is not None:
                return settled(now)
            if progress is not None:
                progress(now.how_far())
            self._transport.sleep(_PAUSE)

    def abort_promotion(self, promotion: Promotion) -> Promotion:
        """End a promotion that waits; the channel stays. Raises `StateError` (already_ended)."""
        path = f"{_promotions(promotion.image)}/{segment(promotion.id)}/abort"
        return Promotion.of(self._transport.send(Call("POST", path, repeatable=True)))

    def promotions(self, name: str) -> Sequence[Promotion]:
        """Promotions of an image that wait or have waited for nodes, newest first."""
        return [Promotion.of(item) for item in self._transport.pages(_promotions(name))]

    def rollback(self, name: str, *, channel: str = STABLE, why: str | None = None, force: bool = False) -> Channel:
        """Point a channel at the release before, in one write. A second one takes the first back.

        Raises `UnknownReferenceError` (release_unknown) where nothing was before, and as `promote` does.
        """
        call = Call("POST", f"{_channel(name, channel)}/rollback", json=said({"why": why, "force": force or None}))
        return Channel.of(self._transport.send(call))

    def history(self, name: str, *, channel: str = STABLE, limit: int | None = None) -> Sequence[ChannelMove]:
        """Who pointed a channel where, newest first: all of it, or so many moves."""
        found: list[ChannelMove] = []
        for item in self._transport.pages(f"{_channel(name, channel)}/history"):
            if len(found) == limit:
                break
            found.append(ChannelMove.of(item))
        return found

    def _promoted(self, reference: str) -> tuple[str, int]:
        asked = parse(reference)
        if asked.is_whole_image:
            message = f"say which release of {asked.name} to promote, as {asked.name}:7"
            raise UnknownReferenceError(message, code="invalid_reference", param="reference")
        return asked.name, asked.number if asked.number is not None else (self.release(reference)).number


def _promotions(name: str) -> str:
    return f"{IMAGES}/{segment(name)}/promotions"


def _channel(name: str, channel: str) -> str:
    return f"{IMAGES}/{segment(name)}/channels/{segment(channel)}"
