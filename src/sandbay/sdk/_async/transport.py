"""HTTP to one installation with one key: time-outs, which calls may be repeated, answers to errors.

A call is sent again only when nothing of it had been sent, or when doing it twice is the same as once.
"""

import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from sandbay.sdk import transport
from sandbay.sdk.errors import BadAnswerError, of_answer
from sandbay.sdk.twins import AsyncPieces, AsyncSleep, async_each, async_sleep

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

AsyncBody = Callable[[], AsyncPieces]
"""Makes the bytes to send, anew for each attempt."""

_ATTEMPTS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


@dataclass(frozen=True, slots=True)
class AsyncCall:
    """One request. `path` starts with a slash.

    repeatable: doing it twice is doing it once; by default so for GET, PUT and DELETE.
    read_timeout: seconds between two pieces of the answer, None for as long as the connection lives.
    patience: seconds for which a server that is away is waited for.
    """

    method: str
    path: str
    params: Mapping[str, str | int | float | None] = field(default_factory=dict)
    json: Any = None
    body: AsyncBody | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool | None = None
    read_timeout: float | None = 60.0
    patience: float = 0.0

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again after some of it was sent."""
        return self.method in {"GET", "PUT", "DELETE"} if self.repeatable is None else self.repeatable


class AsyncTransport:
    """Sends calls. As with httpx, several threads may share a synchronous one, several tasks of a loop the other."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        http: httpx.AsyncBaseTransport | None = None,
        sleep: AsyncSleep = async_sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`http` stands in for the network in tests. Raises `NoContextError` when `url` is no address."""
        self.url = url.rstrip("/")
        self.sleep = sleep
        self._key, self._stand_in, self._clock = key, http, clock
        self._http = self._connect()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def fresh(self) -> "AsyncTransport":
        """The same on new connections: for tidying up after an interruption in the middle of an exchange."""
        return AsyncTransport(self.url, self._key, http=self._stand_in, sleep=self.sleep, clock=self._clock)

    async def send(self, call: AsyncCall) -> Any:
        """The answer's JSON, None when it is empty. Raises the errors of `sdk.errors`."""
        content = (await self._answer(call, whole=True)).content
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise BadAnswerError("the server's answer is no JSON", code="bad_answer") from error

    async def open(self, call: AsyncCall) -> httpx.Response:
        """The answer with its body still to be read; the caller closes it."""
        return await self._answer(call, whole=False)

    async def websocket(self, path: str) -> "ClientConnection":
        """A WebSocket, asked for once. Raises what a POST raises; the caller closes it."""
        from websockets.asyncio.client import connect  # noqa: PLC0415 - loaded only for this
        from websockets.exceptions import InvalidStatus, WebSocketException  # noqa: PLC0415

        url = transport.address(self.url)
        secure = url.scheme == "https"
        try:
            socket: ClientConnection = await connect(
                transport.websocket(self.url, path),
                additional_headers=transport.headers(self._key),
                ssl=ssl.create_default_context() if secure else None,
                proxy=None if transport.is_loopback(url.host) else True,
                **transport.WEBSOCKET,
            ).__aenter__()
            return socket
        except InvalidStatus as error:
            raise of_answer(error.response.status_code, bytes(error.response.body or b"")) from error
        except (WebSocketException, EOFError) as error:
            raise transport.gone(self.url, error, sent=True) from error
        except OSError as error:
            raise transport.gone(self.url, error, sent=False) from error

    async def pages(self, path: str, params: Mapping[str, str | None] | None = None) -> AsyncIterator[dict[str, Any]]:
        """All items of a list, page by page as they are asked for."""
        after: str | None = None
        while True:
            page = await self.send(AsyncCall("GET", path, params={**(params or {}), "after": after}))
            try:
                items, following = page["items"], page["next"]
            except (KeyError, TypeError) as error:
                raise BadAnswerError("the server's answer is no list", code="bad_answer") from error
            for item in items:
                yield item
            if following is None:
                return
            after = following

    async def _answer(self, call: AsyncCall, *, whole: bool) -> httpx.Response:
        """Send until there is an answer, as often as is right."""
        until = self._clock() + call.patience
        pause, attempts, sent = _FIRST_PAUSE, 0, False
        while True:
            attempts += 1
            try:
                return await self._once(call, whole=whole)
            except httpx.TransportError as error:
                sent = sent or not isinstance(error, transport.NOT_SENT)
                if (sent and not call.may_repeat) or (attempts >= _ATTEMPTS and self._clock() >= until):
                    raise transport.gone(self.url, error, sent=sent) from error
            await self.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _once(self, call: AsyncCall, *, whole: bool) -> httpx.Response:
        response = await self._http.send(self._request(call), stream=True)
        try:
            if not response.is_success:
                raise of_answer(response.status_code, await response.aread())
            if whole:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    def _request(self, call: AsyncCall) -> httpx.Request:
        headers = dict(call.headers)
        content: bytes | AsyncIterator[bytes] | None = None
        if call.body is not None:
            content = async_each(call.body())
        elif call.json is not None:
            content = json.dumps(call.json, separators=(",", ":"), allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        return self._http.build_request(
            call.method,
            call.path + transport.query(call.params),
            content=content,
            headers=headers,
            timeout=httpx.Timeout(60.0, connect=10.0, read=call.read_timeout),
        )

    def _connect(self) -> httpx.AsyncClient:
        url = transport.address(self.url)
        # The system's certificates, loaded only where they are needed: it takes longer than a local call.
        verify = ssl.create_default_context() if url.scheme == "https" else False
        here = transport.is_loopback(url.host)
        network = httpx.AsyncHTTPTransport(verify=verify, socket_options=transport.KEEPALIVE, limits=transport.LIMITS)
        return httpx.AsyncClient(
            base_url=url,
            headers=transport.headers(self._key),
            transport=self._stand_in or (network if here else None),
            verify=verify,
            trust_env=not here,
            limits=transport.LIMITS,
        )
