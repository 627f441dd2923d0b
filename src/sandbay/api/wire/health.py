"""Health."""

from typing import Literal

from pydantic import Field

from sandbay.api.wire.base import Out


class HealthOut(Out):
    """The answer while all is well; anything else is no 200."""

    status: Literal["ok"] = Field(default="ok", description="Always this.")
