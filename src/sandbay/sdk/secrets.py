"""A project's secrets, as far as anybody is told."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.wire import Resource, moment, take


@dataclass(frozen=True, kw_only=True)
class Secret(Resource):
    """That there is one."""

    name: str
    updated_at: dt.datetime | None = None

    @classmethod
    def of(cls, data: Any) -> "Secret":
        """From the secret resource."""
        return take(cls, data, updated_at=moment)
