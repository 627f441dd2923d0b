"""HTTP to one installation with one key: time-outs, which calls may be repeated, answers to errors.

A call is sent again only when nothing of it had been sent, or when doing it twice is the same as once.
"""

import ipaddress
import json
import socket
import ssl
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from sandbay.sdk.errors import (
    BadAnswerError,
    LostAnswerError,
    NoContextError,
    SandbayError,
    UnknownReferenceError,
    UnreachableError,
    of_answer,
)

Body = Callable[[], Iterable[bytes]]
"""Makes the bytes to send, anew for each attempt."""

_ATTEMPTS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_KEPT_FOR = 2.0  # shorter than servers keep a connection, so none is used that is just being closed
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *[
        (socket.IPPROTO_TCP, option, seconds)
        for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if (option := getattr(socket, name, None)) is not None
    ],
]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `path` starts with a slash.

    repeatable: doing it twice is doing it once; by default so for GET, PUT and DELETE.
    read_timeout: seconds between two pieces of the answer, None for as long as the connection lives.
    patience: seconds for which a server that is away is waited for.
    """

    method: str
    path: str
    params: Mapping[str, str | int | float | None] = field(default_factory=dict)
    json: Any = None
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool | None = None
    read_timeout: float | None = 60.0
    patience: float = 0.0

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again after some of it was sent."""
        return self.method in {"GET", "PUT", "DELETE"} if self.repeatable is None else self.repeatable


class Transport:
    """Sends calls. Safe to use from several threads, as httpx's client is."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        http: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`http` stands in for the network in tests. Raises `NoContextError` when `url` is no address."""
        self.url = url.rstrip("/")
        self._key, self._stand_in, self._sleep, self._clock = key, http, sleep, clock
        self._http = self._connect()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def fresh(self) -> "Transport":
        """The same on new connections: for tidying up after an interruption in the middle of an exchange."""
        return Transport(self.url, self._key, http=self._stand_in, sleep=self._sleep, clock=self._clock)

    def send(self, call: Call) -> Any:
        """The answer's JSON, None when it is empty. Raises the errors of `sdk.errors`."""
        content = self._answer(call, whole=True).content
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise BadAnswerError("the server's answer is no JSON", code="bad_answer") from error

    def open(self, call: Call) -> httpx.Response:
        """The answer with its body still to be read; the caller closes it."""
        return self._answer(call, whole=False)

    def pages(self, path: str, params: Mapping[str, str | None] | None = None) -> Iterator[dict[str, Any]]:
        """All items of a list, page by page as they are asked for."""
        after: str | None = None
        while True:
            page = self.send(Call("GET", path, params={**(params or {}), "after": after}))
            try:
                items, following = page["items"], page["next"]
            except (KeyError, TypeError) as error:
                raise BadAnswerError("the server's answer is no list", code="bad_answer") from error
            yield from items
            if following is None:
                return
            after = following

    def _answer(self, call: Call, *, whole: bool) -> httpx.Response:
        """Send until there is an answer, as often as is right."""
        until = self._clock() + call.patience
        pause, attempts, sent = _FIRST_PAUSE, 0, False
        while True:
            attempts += 1
            try:
                return self._once(call, whole=whole)
            except httpx.TransportError as error:
                sent = sent or not isinstance(error, _NOT_SENT)
                if (sent and not call.may_repeat) or (attempts >= _ATTEMPTS and self._clock() >= until):
                    raise self._gone(error, sent=sent) from error
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _once(self, call: Call, *, whole: bool) -> httpx.Response:
        response = self._http.send(self._request(call), stream=True)
        try:
            if not response.is_success:
                raise of_answer(response.status_code, response.read())
            if whole:
                response.read()
        except BaseException:
            response.close()
            raise
        return response

    def _request(self, call: Call) -> httpx.Request:
        headers = dict(call.headers)
        content: bytes | Iterable[bytes] | None = None
        if call.body is not None:
            content = call.body()
        elif call.json is not None:
            content = json.dumps(call.json, separators=(",", ":"), allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        said = {name: value for name, value in call.params.items() if value is not None}
        # Names of files may hold bytes that are no text; they travel as they are.
        query = f"?{urllib.parse.urlencode(said, errors='surrogateescape')}" if said else ""
        return self._http.build_request(
            call.method,
            call.path + query,
            content=content,
            headers=headers,
            timeout=httpx.Timeout(60.0, connect=10.0, read=call.read_timeout),
        )

    def _gone(self, error: httpx.TransportError, *, sent: bool) -> SandbayError:
        if not sent:
            return UnreachableError(f"no installation answers at {self.url}: {error}", code="unreachable")
        message = f"{self.url} did not answer to the end: {str(error) or type(error).__name__}"
        return LostAnswerError(message, code="connection_lost")

    def _connect(self) -> httpx.Client:
        try:
            url = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise self._no_address() from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise self._no_address()
        # The system's certificates, loaded only where they are needed: it takes longer than a local call.
        verify = ssl.create_default_context() if url.scheme == "https" else False
        here = _is_loopback(url.host)
        network = httpx.HTTPTransport(
            verify=verify,
            socket_options=_KEEPALIVE,
            limits=httpx.Limits(keepalive_expiry=_KEPT_FOR),
        )
        return httpx.Client(
            base_url=url,
            headers={
                "Authorization": f"Bearer {self._key}",
                "User-Agent": "sandbay-python",
                "Accept-Encoding": "identity",
            },
            transport=self._stand_in or (network if here else None),
            verify=verify,
            trust_env=not here,
            limits=httpx.Limits(keepalive_expiry=_KEPT_FOR),
        )

    def _no_address(self) -> NoContextError:
        return NoContextError(f"{self.url!r} is no address of an installation", code="invalid_context")


def segment(text: str) -> str:
    """A name or id as one step of a path, whatever it holds. Raises `UnknownReferenceError` for what is none."""
    if text in {"", ".", ".."}:
        raise UnknownReferenceError(f"{text!r} is neither a name nor an id", code="not_found")
    return urllib.parse.quote(text, safe="", errors="surrogateescape")


def _is_loopback(host: str) -> bool:
    """Whether requests stay on this machine, where no proxy has any business."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
