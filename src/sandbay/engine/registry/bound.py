"""A bound on how long a peer may take to say one thing: the head of an answer, or the next piece of its body.

A read timeout begins anew with every byte, so a peer that drips the head of an answer, interim answers or the sizes of
chunks would hold its reader for ever. Only the connection sees those bytes, so each gets, when it is made, a `read`
that knows what its thread waits for.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import httpx

_MADE = (".connect_tcp.complete", ".start_tls.complete")


class _Stream(Protocol):
    """A connection, as httpx's extension `trace` tells of it."""

    read: Callable[..., bytes]


class _Bound:
    """So many seconds from the first read on; what is sent before takes its own time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def left(self) -> float:
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
        return self._until - now


_bound: ContextVar[_Bound | None] = ContextVar("sandbay_read_bound", default=None)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread reads in the block has to be there in time. Raises `httpx.ReadTimeout`."""
    token = _bound.set(_Bound(seconds))
    try:
        yield
    finally:
        _bound.reset(token)


def bounded(event: str, info: Mapping[str, Any]) -> None:
    """The extension `trace` of a request: a connection that is made for it heeds `within` from then on."""
    if event.endswith(_MADE):
        _heed(info["return_value"])


def _heed(stream: _Stream) -> None:
    read = stream.read

    def heeding(max_bytes: int, timeout: float | None = None) -> bytes:
        bound = _bound.get()
        if bound is None:
            return read(max_bytes, timeout)
        left = bound.left()
        if left <= 0:
            raise httpx.ReadTimeout("what was asked for drips")
        return read(max_bytes, left if timeout is None else min(left, timeout))

    stream.read = heeding
