"""How often one may ask: requests of one key, and attempts with no good key from one address.

Each has a bucket that fills with time; what it lacks is told as seconds to wait. A key that was good lately is not
held up by others at its address. There are at most `_MOST` buckets of a kind: the one used longest ago goes first,
which can only be in its owner's favour.
"""

import ipaddress
import math
import threading
from collections import OrderedDict

from sandbay.app.core import Settings
from sandbay.domain.canonical import sha256
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.clock import Clock

_MOST = 10_000
_NETWORK_OF_ONE = 64
"""Bits of an IPv6 address that tell one customer from another."""


class Buckets:
    """Tokens by name: `burst` at first, `rate` more in a second. Safe from several threads."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        """A rate of 0 means no limit."""
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._levels

    def __len__(self) -> int:
        return len(self._levels)

    def lacks(self, name: str) -> float:
        """Seconds until there is a token; 0 when there is one now."""
        with self._lock:
            return self._wait(self._level(name))

    def take(self, name: str) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        with self._lock:
            level = self._level(name)
            wait = self._wait(level)
            self._levels[name] = (level if wait else level - 1.0, self._clock.monotonic())
            self._levels.move_to_end(name)
            if len(self._levels) > _MOST:
                self._levels.popitem(last=False)
            return wait

    def forget(self, name: str) -> None:
        """It need not be known any more."""
        with self._lock:
            self._levels.pop(name, None)

    def _level(self, name: str) -> float:
        now = self._clock.monotonic()
        level, at = self._levels.get(name, (float(self._burst), now))
        return min(float(self._burst), level + (now - at) * self._rate)

    def _wait(self, level: float) -> float:
        return 0.0 if level >= 1.0 or not self._rate else (1.0 - level) / self._rate


class Limits:
    """What `api.middleware.Keys` asks, in this order: `attempt`, then `good` or `bad`. Each may refuse."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Begin with full buckets."""
        self._keys = Buckets(settings.requests_per_second, settings.request_burst, clock)
        self._addresses = Buckets(settings.bad_keys_per_second, settings.bad_key_burst, clock)

    def attempt(self, address: str, secret: str) -> None:
        """Somebody shows a key. Refuses without looking at it where there were too many bad ones."""
        if sha256(secret.encode()) not in self._keys:
            _refuse(self._addresses.lacks(_place(address)), "too many attempts without a good key came from there")

    def good(self, secret: str) -> None:
        """The key is one of ours."""
        _refuse(self._keys.take(sha256(secret.encode())), "this key is used more often than the installation allows")

    def bad(self, address: str, secret: str) -> None:
        """It is none, or is revoked."""
        self._keys.forget(sha256(secret.encode()))
        self._addresses.take(_place(address))


def _place(address: str) -> str:
    """An IPv4 address, or the network of an IPv6 one: its owner has all of that."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:  # noqa: PLR2004
        return address
    return str(ipaddress.ip_network((parsed, _NETWORK_OF_ONE), strict=False))


def _refuse(wait: float, message: str) -> None:
    if wait:
        details = {"retry_after": math.ceil(wait)}
        raise RefusedError(Reason.TOO_MANY_REQUESTS, f"{message}; try again later", details=details)
