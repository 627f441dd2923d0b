"""Channels over time, and promotions that wait for nodes."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.errors import of_reason
from sandbay.sdk.resources import Progress, Reason
from sandbay.sdk.wire import Resource, moment, take


@dataclass(frozen=True, kw_only=True)
class ChannelMove(Resource):
    """Who pointed a channel where, from where (None: it is new), and why. `revision` is the channel's by this move."""

    revision: int
    release: int
    before: int | None
    at: dt.datetime
    principal: str
    why: str = ""

    @classmethod
    def of(cls, data: Any) -> "ChannelMove":
        """From one item of a channel's history."""
        return take(cls, data, at=moment)


@dataclass(frozen=True, kw_only=True)
class Promotion(Resource):
    """A channel that moves when enough nodes are ready. `outcome`: settled, failed, aborted, or None while it waits.

    nodes: on how many nodes the release has to be ready; None: on every one that can run it.
    progress: `{ready, needed, nodes: [{node, online, state, bytes_done, bytes_total, failure}]}` while it waits.
    """

    id: str
    image: str
    channel: str
    release: int
    before: int | None
    nodes: int | None
    deadline: dt.datetime
    outcome: str | None
    failure: Reason | None = None
    principal: str | None = None
    why: str = ""
    ended_by: str | None = None
    progress: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, data: Any) -> "Promotion":
        """From the promotion resource."""
        return take(cls, data, deadline=moment, failure=Reason.of)

    def how_far(self) -> Progress:
        """For a progress callback: nodes in words, bytes of all of them together."""
        told = self.progress or {}
        nodes = [node for node in told.get("nodes", ()) if isinstance(node, dict)]
        done, total = (sum(node.get(name) or 0 for node in nodes) for name in ("bytes_done", "bytes_total"))
        return Progress(f"ready on {told.get('ready', 0)} of {told.get('needed', '?')} nodes", done, total or None)


def settled(promotion: Promotion) -> Promotion:
    """The promotion when it is settled. Raises why it failed, or `StateError` (cancelled) when it was aborted."""
    if promotion.outcome == "failed":
        raise of_reason(promotion.raw.get("failure"))
    if promotion.outcome == "aborted":
        message = f"{promotion.ended_by} has aborted it"
        raise of_reason({"code": "cancelled", "message": message, "details": {"promotion": promotion.id}})
    return promotion
