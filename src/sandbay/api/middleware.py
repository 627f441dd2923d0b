"""What stands around every request: its id, its key, and the answer to faults of ours. Pure ASGI.

A namespace takes one kind of key. That is decided here by the path, so that no route can forget to ask.
"""

import re
import secrets

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbay.api import errors
from sandbay.api.limits import Limits
from sandbay.app.access import authenticate
from sandbay.app.core import Actor, Core
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.project import KeyKind
from sandbay.domain.reasons import Reason

NAMESPACES = {"/core/v1": KeyKind.ADMINISTRATOR, "/v1": KeyKind.PROJECT}
"""Path prefix → the kind of key that it takes."""

REQUEST_ID = "x-request-id"
_BEGINNINGS = frozenset({"http.response.start", "websocket.accept", "websocket.http.response.start"})
_GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

log = structlog.get_logger()


class RequestIds:
    """Echoes `X-Request-Id` or makes one, and turns an unexpected exception into `internal`."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _GIVEN_ID.fullmatch(given) else f"req_{secrets.token_hex(10)}"
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] in _BEGINNINGS:
                started = True
                message.setdefault("headers", [])
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception:
            log.exception(
                "request failed", method=scope.get("method", "WebSocket"), path=scope["path"], request_id=request_id
            )
            if started:
                raise  # half an answer can only be broken off
            refusal = Refusal(Reason.INTERNAL, "a fault of ours; the log has it under this request id")
            await errors.refused(refusal, request_id)(scope, receive, send_with_id)


class Keys:
    """Lets a request into a namespace with a key of its kind, and not too often.

    Else it answers `invalid_api_key`, `forbidden` or `too_many_requests`.
    """

    def __init__(self, app: ASGIApp, core: Core) -> None:
        """Guard an application with the keys of an installation."""
        self._app, self._core = app, core
        self._limits = Limits(core.settings, core.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        kind = None if scope["type"] == "lifespan" else _needed(scope["path"])
        if kind is None:
            await self._app(scope, receive, send)
            return
        request_id = scope["state"]["request_id"]
        try:
            actor = await run_in_threadpool(self._admit, scope, kind, request_id)
        except RefusedError as error:
            await errors.refused(error.refusal, request_id)(scope, receive, send)
            return
        scope["state"]["actor"] = actor
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope, kind: KeyKind, request_id: str) -> Actor:
        """Who asks. Refuses also whoever asks too often."""
        address, _ = scope.get("client") or ("", 0)
        authorization = Headers(scope=scope).get("authorization", "")
        self._limits.attempt(address, authorization)
        try:
            secret = _secret(authorization)
            actor = authenticate(self._core, secret, kind, request_id)
        except RefusedError as error:
            if error.refusal.reason is Reason.INVALID_API_KEY:
                self._limits.bad(address, authorization)
            else:
                self._limits.good(authorization)
            raise
        self._limits.good(authorization)
        return actor


def _needed(path: str) -> KeyKind | None:
    return next((kind for prefix, kind in NAMESPACES.items() if path == prefix or path.startswith(prefix + "/")), None)


def _secret(authorization: str) -> str:
    scheme, _, secret = authorization.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise RefusedError(Reason.INVALID_API_KEY, "there is no key: send Authorization: Bearer and an API key")
    return secret
