"""Channels over time."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

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
