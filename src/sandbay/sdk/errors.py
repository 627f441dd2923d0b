"""What went wrong, as exceptions: one class per group of reasons, `code` tells which.

    SandbayError
    ├── UnknownReferenceError   names that mean nothing here: image_unknown, not_found, …
    ├── ChoosingError           the image may not or cannot be used: image_retired, image_unsupported, …
    ├── PlacementError          no node for it: image_not_ready, no_capacity, wait_expired, …
    ├── StartError              it did not run: start_failed, image_mismatch, timed_out, …
    ├── RequestError            the request or the image's content does not allow it: path_invalid, no_command, …
    ├── ContentError            an image's bytes are at fault: digest_mismatch, malformed_layout, …
    ├── TransferError           bytes did not arrive: registry_unreachable, stream_lost, …
    ├── RoomError               no_space
    ├── StateError              it has changed or is in use: revision_stale, name_taken, not_running, …
    ├── AccessError             the key: invalid_api_key, forbidden, too_many_requests
    ├── ServerError             internal, host_unfit, database_unavailable
    └── LocalError              found on this side, no answer of the installation
        ├── UnreachableError    unreachable: nothing was sent
        ├── LostAnswerError     connection_lost: it was sent, whether it was done is unknown
        ├── BadAnswerError      bad_answer: the answer is none of an installation
        └── NoContextError      no_context, invalid_context: no address or key

Branch on `code` and `param`, never on the message.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

Facts = Mapping[str, Any]


class SandbayError(Exception):
    """A "no" with a name. `details` holds JSON-ready facts; `session_id` the Session that failed, if one did."""

    type: ClassVar[str] = "server_error"
    session_id: str | None = None

    def __init__(
        self,
        message: str,
        *,
        code: str,
        param: str | None = None,
        details: Facts | None = None,
        kind: str | None = None,
        request_id: str | None = None,
    ) -> None:
        """`kind` is the envelope's `type`, where the server sent one."""
        super().__init__(f"{message} ({code})")
        self.message = message
        self.code = code
        self.param = param
        self.details: Facts = dict(details or {})
        self.error_type = kind or self.type
        self.request_id = request_id

    def envelope(self) -> dict[str, Any]:
        """The error as the server sends it: `{"error": {type, code, message, param, details, request_id}}`."""
        return {
            "error": {
                "type": self.error_type,
                "code": self.code,
                "message": self.message,
                "param": self.param,
                "details": dict(self.details),
                "request_id": self.request_id,
            }
        }


class UnknownReferenceError(SandbayError):
    """A name or id means nothing here."""

    type = "not_found_error"


class ChoosingError(SandbayError):
    """The image may not or cannot be used."""

    type = "conflict_error"


class PlacementError(SandbayError):
    """No node for it, now or for good."""

    type = "unavailable_error"


class StartError(SandbayError):
    """It did not start, or did not run to its end."""


class RequestError(SandbayError):
    """The request, or what it meets in the sandbox, does not allow it."""

    type = "invalid_request_error"


class ContentError(SandbayError):
    """An image's bytes are at fault."""

    type = "invalid_request_error"


class TransferError(SandbayError):
    """Bytes did not arrive whole."""

    type = "unavailable_error"


class RoomError(SandbayError):
    """A disk is full."""

    type = "unavailable_error"


class StateError(SandbayError):
    """It has changed, is in use, or is over."""

    type = "conflict_error"


class AccessError(SandbayError):
    """The key is unknown, may not do that, or not so often."""

    type = "permission_error"


class ServerError(SandbayError):
    """A fault of the installation."""


class LocalError(SandbayError):
    """Found on this side; the installation did not answer with a reason."""


class UnreachableError(LocalError):
    """Nothing answers at the address, and nothing was sent."""

    type = "unavailable_error"


class LostAnswerError(LocalError):
    """It was sent and no answer came: whether it was done is unknown."""

    type = "unavailable_error"


class BadAnswerError(LocalError):
    """What answers does not speak as an installation does."""


class NoContextError(LocalError):
    """No address or no key is known here, or the file that should hold them is no good."""

    type = "invalid_request_error"


_CODES: dict[type[SandbayError], str] = {
    UnknownReferenceError: "invalid_reference image_unknown channel_unknown release_unknown template_unknown"
    " scope_unknown scope_required secret_unknown provider_unknown not_found",
    ChoosingError: "image_not_allowed image_not_granted image_enforced override_denied image_retired release_retired"
    " release_pending release_rejected no_default_image image_unsupported requirements_unmet"
    " release_incomplete not_one_distribution",
    PlacementError: "image_not_ready no_capacity no_node_online pool_paused wait_expired image_prepare_failed"
    " snapshot_node_offline image_lost",
    StartError: "image_mismatch image_absent_on_node start_failed setup_failed node_lost timed_out",
    RequestError: "user_not_found no_command no_shell invalid_workdir network_unsupported resource_unsupported"
    " ability_unsupported path_not_found path_invalid contract_violated build_failed invalid_body",
    ContentError: "digest_mismatch size_mismatch diff_id_mismatch malformed_layer malformed_manifest malformed_config"
    " malformed_layout malformed_archive ambiguous_archive blob_missing not_an_image platform_mismatch"
    " unsupported_media_type invalid_digest unsupported_digest unsafe_layer_path unsafe_link unsafe_whiteout"
    " unsafe_device limit_exceeded content_lost",
    TransferError: "stream_lost registry_unreachable unauthorized_or_missing source_forbidden repository_missing"
    " manifest_missing rate_limited stalled",
    RoomError: "no_space",
    StateError: "generation_stale revision_stale idempotency_conflict in_use name_taken not_running already_ended"
    " not_suspended limit_reached cancelled",
    AccessError: "invalid_api_key forbidden too_many_requests",
    ServerError: "host_unfit database_unavailable internal",
}
_BY_CODE = {code: kind for kind, codes in _CODES.items() for code in codes.split()}
_BY_TYPE: dict[str, type[SandbayError]] = {
    "invalid_request_error": RequestError,
    "authentication_error": AccessError,
    "permission_error": AccessError,
    "not_found_error": UnknownReferenceError,
    "conflict_error": StateError,
    "rate_limit_error": AccessError,
    "unavailable_error": PlacementError,
    "server_error": ServerError,
}


def class_of(code: str, kind: str | None = None) -> type[SandbayError]:
    """The class for a reason's code; a code newer than this client goes by its envelope's `type`."""
    return _BY_CODE.get(code) or _BY_TYPE.get(kind or "", ServerError)


def of_reason(reason: Any) -> SandbayError:
    """The error for `{code, message, details?, type?, param?, request_id?}`, as envelopes and Sessions carry it."""
    if not isinstance(reason, dict) or not isinstance(reason.get("code"), str):
        return BadAnswerError("a refusal came without a code", code="bad_answer")
    code, kind, details = reason["code"], reason.get("type"), reason.get("details")
    return class_of(code, kind)(
        str(reason.get("message") or code),
        code=code,
        param=reason.get("param"),
        details=details if isinstance(details, dict) else None,
        kind=kind,
        request_id=reason.get("request_id"),
    )


def of_answer(status: int, body: bytes) -> SandbayError:
    """The error for a whole HTTP answer that is no success."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return BadAnswerError(
            f"the server answered {status} in a form that is not an installation's",
            code="bad_answer",
            details={"status": status},
        )
    return of_reason(error)
