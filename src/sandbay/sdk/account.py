"""What the audit knows of one Session."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.wire import Resource, each, moment, take


@dataclass(frozen=True, kw_only=True)
class SessionAccount(Resource):
    """Which release a Session ran (`image`), how that was chosen (`trail`), and what was done to it (`entries`)."""

    session: str
    project: str
    principal: str
    status: str
    created_at: dt.datetime
    ended_at: dt.datetime | None
    image: Mapping[str, Any]
    frozen_digest: str
    trail: tuple[Mapping[str, Any], ...] = ()
    entries: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, data: Any) -> "SessionAccount":
        """From the account of a Session."""
        return take(cls, data, created_at=moment, ended_at=moment, trail=each(dict), entries=each(dict))
