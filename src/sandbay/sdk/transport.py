"""What both transports share: the parts of a request, and which failures mean that nothing was sent."""

import ipaddress
import logging
import socket
import urllib.parse
from collections.abc import Mapping
from typing import Any

import httpx

from sandbay.sdk.errors import (
    LostAnswerError,
    NoContextError,
    SandbayError,
    UnknownReferenceError,
    UnreachableError,
)

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LIMITS = httpx.Limits(keepalive_expiry=2.0)  # shorter than servers keep one, so none is used that is just being closed
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *[
        (socket.IPPROTO_TCP, option, seconds)
        for name, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if (option := getattr(socket, name, None)) is not None
    ],
]


_LOG = logging.getLogger("sandbay.sdk")
_LOG.addHandler(logging.NullHandler())  # what a broken connection is like is told by what is raised
WEBSOCKET: Mapping[str, Any] = {
    "user_agent_header": None,  # it stands among ours
    "compression": None,
    "open_timeout": 60.0,
    "ping_timeout": 60.0,
    "close_timeout": 2.0,
    "max_queue": None,  # what may come is bounded by the credit that was given
    "logger": _LOG,
}
"""How a WebSocket is opened."""


def segment(text: str) -> str:
    """A name or id as one step of a path, whatever it holds. Raises `UnknownReferenceError` for what is none."""
    if text in {"", ".", ".."}:
        raise UnknownReferenceError(f"{text!r} is neither a name nor an id", code="not_found")
    return urllib.parse.quote(text, safe="", errors="surrogateescape")


def query(params: Mapping[str, str | int | float | None]) -> str:
    """The parameters that are said, with the question mark; names of files may hold bytes that are no text."""
    said = {name: value for name, value in params.items() if value is not None}
    return f"?{urllib.parse.urlencode(said, errors='surrogateescape')}" if said else ""


def headers(key: str) -> dict[str, str]:
    """What goes with each request."""
    return {
        "Authorization": f"Bearer {key}",
        "User-Agent": "sandbay-python",
        "Accept-Encoding": "identity",
    }


def address(url: str) -> httpx.URL:
    """Where an installation is. Raises `NoContextError` for what is no address."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise _no_address(url) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise _no_address(url)
    return parsed


def websocket(url: str, path: str) -> str:
    """The address of a WebSocket of an installation."""
    return f"ws{url.removeprefix('http')}{path}"


def is_loopback(host: str) -> bool:
    """Whether requests stay on this machine, where no proxy has any business."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def gone(url: str, error: Exception, *, sent: bool) -> SandbayError:
    """The error for an answer that did not come."""
    if not sent:
        return UnreachableError(f"no installation answers at {url}: {error}", code="unreachable")
    message = f"{url} did not answer to the end: {str(error) or type(error).__name__}"
    return LostAnswerError(message, code="connection_lost")


def _no_address(url: str) -> NoContextError:
    return NoContextError(f"{url!r} is no address of an installation", code="invalid_context")
