"""How an operation's refusals are documented: per status, the codes that it may answer."""

from typing import Any

from sandbay.api.errors import status_of
from sandbay.api.wire.base import Envelope, Out
from sandbay.domain.reasons import Group, Reason

Answers = dict[int | str, dict[str, Any]]
"""What FastAPI takes as `responses`."""

_EVERYWHERE = (
    *(Reason.INVALID_API_KEY, Reason.FORBIDDEN, Reason.TOO_MANY_REQUESTS, Reason.INVALID_BODY),
    *(Reason.DATABASE_UNAVAILABLE, Reason.INTERNAL),
)

SELECTING = (
    Reason.INVALID_REFERENCE,
    Reason.IMAGE_UNKNOWN,
    Reason.CHANNEL_UNKNOWN,
    Reason.RELEASE_UNKNOWN,
    Reason.IMAGE_RETIRED,
    Reason.RELEASE_RETIRED,
    Reason.RELEASE_PENDING,
    Reason.RELEASE_REJECTED,
    Reason.NO_DEFAULT_IMAGE,
    Reason.IMAGE_UNSUPPORTED,
    Reason.IMAGE_NOT_ALLOWED,
    Reason.IMAGE_NOT_GRANTED,
    Reason.IMAGE_ENFORCED,
    Reason.OVERRIDE_DENIED,
)
"""What choosing an image can come to."""

RUNNING = (Reason.NOT_FOUND, Reason.NOT_RUNNING, Reason.ALREADY_ENDED, Reason.NO_NODE_ONLINE)
"""What reaching a running sandbox can come to."""


def bytes_of(media_type: str) -> Answers:
    """A 200 that is no JSON."""
    return {200: {"content": {media_type: {"schema": {"type": "string", "format": "binary"}}}}}


def also(status: int, model: type[Out], what: str) -> Answers:
    """A second good answer."""
    return {status: {"model": model, "description": what}}


def refusing(*reasons: Reason) -> Answers:
    """The `responses` of an operation: those of every operation, and these."""
    codes: dict[int, list[str]] = {}
    for reason in (*_EVERYWHERE, *reasons):
        known = {status_of(reason)}
        if reason.about.group is Group.REFERENCE:
            known.add(status_of(reason, named_in_body=True))
        for status in known:
            codes.setdefault(status, []).append(reason.value)
    answers: Answers = {
        status: {"model": Envelope, "description": ", ".join(f"`{code}`" for code in codes[status])}
        for status in sorted(codes)
    }
    return answers | {"default": {"model": Envelope, "description": "Any other refusal."}}
