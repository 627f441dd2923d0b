"""From a refusal to HTTP: the only place that knows statuses and error types. Every answer that says no is made here.

Clients branch on `code` and `param`. `details` are facts of ours; a traceback never leaves the process.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from sandbay.domain.canonical import plain
from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Group, Reason

_OF_GROUP: Mapping[Group, int] = {
    Group.REFERENCE: 404,
    Group.CHOOSING: 409,
    Group.PLACEMENT: 503,
    Group.START: 502,
    Group.REQUEST: 422,
    Group.CONTENT: 422,
    Group.TRANSFER: 502,
    Group.ROOM: 507,
    Group.STATE: 409,
    Group.ACCESS: 403,
    Group.SERVER: 500,
}
_OF_REASON: Mapping[Reason, int] = {
    Reason.INVALID_REFERENCE: 400,
    Reason.SCOPE_REQUIRED: 400,
    Reason.IMAGE_NOT_ALLOWED: 403,
    Reason.IMAGE_NOT_GRANTED: 403,
    Reason.IMAGE_ENFORCED: 403,
    Reason.OVERRIDE_DENIED: 403,
    Reason.IMAGE_UNSUPPORTED: 400,
    Reason.REQUIREMENTS_UNMET: 400,
    Reason.RELEASE_INCOMPLETE: 400,
    Reason.NOT_ONE_DISTRIBUTION: 400,
    Reason.INVALID_API_KEY: 401,
    Reason.TOO_MANY_REQUESTS: 429,
    Reason.INVALID_BODY: 400,
    Reason.HOST_UNFIT: 503,
    Reason.DATABASE_UNAVAILABLE: 503,
}
"""Where a reason's status is not its group's."""

_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "unavailable_error",
    507: "unavailable_error",
}


def status_of(reason: Reason, *, named_in_body: bool = False) -> int:
    """The HTTP status. What a body names and nobody knows is the body's fault (400), not a missing page (404)."""
    status = _OF_REASON.get(reason, _OF_GROUP[reason.about.group])
    return 400 if status == HTTPStatus.NOT_FOUND and named_in_body and reason is not Reason.NOT_FOUND else status


def type_of(status: int) -> str:
    """The envelope's `type`."""
    return _TYPES[status]


def told(reason: Reason, message: str, details: Mapping[str, object]) -> dict[str, Any]:
    """What a Session, a release or a node says of its own failure: `{code, message, details}`."""
    return {"code": reason.value, "message": message, "details": plain(dict(details))}


def envelope(refusal: Refusal, request_id: str | None, status: int | None = None) -> dict[str, Any]:
    """`{"error": {type, code, message, param, details, request_id}}`."""
    said = told(refusal.reason, refusal.message, refusal.details)
    kind = type_of(status or status_for(refusal))
    return {"error": {"type": kind, **said, "param": refusal.param, "request_id": request_id}}


def status_for(refusal: Refusal) -> int:
    """The HTTP status of this refusal."""
    return status_of(refusal.reason, named_in_body=refusal.param is not None)


def refused(
    refusal: Refusal, request_id: str | None, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a request that cannot be done. `status` only where HTTP itself says no (405)."""
    code = status or status_for(refusal)
    more = dict(headers or {})
    retry_after = refusal.details.get("retry_after")
    if isinstance(retry_after, int):
        more["Retry-After"] = str(retry_after)
    if refusal.reason is Reason.INVALID_API_KEY:
        more["WWW-Authenticate"] = "Bearer"
    return AsciiJson(envelope(refusal, request_id, code), code, more)


class AsciiJson(Response):
    """JSON in ASCII: names of files need not be UTF-8, and escapes can carry what they hold."""

    media_type: str | None = "application/json"

    def render(self, content: Any) -> bytes:
        """Bytes of the JSON."""
        return json.dumps(content, separators=(",", ":"), default=str).encode("ascii")
