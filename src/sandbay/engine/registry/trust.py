"""Where requests may go: over TLS anywhere, in the clear only to hosts that the installation lists.

Loopback is not listed by itself. What a registry names (redirects, token realms) is held to the same.
"""

from collections.abc import Iterable

import httpx

from sandbay.engine.registry.refusals import refused_for_good

# Docker's registry answers elsewhere than its name says.
_ENDPOINTS = {"docker.io": "registry-1.docker.io"}
_PORTS = {"https": 443, "http": 80}


class Trust:
    """Which hosts may be spoken to without TLS, as `host` or `host:port`."""

    def __init__(self, plain: Iterable[str] = ()) -> None:
        """Take the list."""
        self._plain = frozenset(host.lower() for host in plain)

    def base(self, registry: str) -> str:
        """The address of a registry by its name."""
        return f"{'http' if registry.lower() in self._plain else 'https'}://{_ENDPOINTS.get(registry, registry)}"

    def address(self, registry: str, text: str, came_from: httpx.URL | None = None) -> httpx.URL:
        """An address that the registry names. Refuses with `registry_unreachable` what may not be asked."""
        try:
            url = httpx.URL(text) if came_from is None else came_from.join(text)
        except httpx.InvalidURL:
            raise refused_for_good(registry, "it names an address that is none") from None
        if url.scheme not in _PORTS or not url.host or url.userinfo:
            raise refused_for_good(registry, "it names an address that is not asked", scheme=url.scheme[:20])
        if url.scheme == "http" and not self._may_be_plain(url):
            raise refused_for_good(
                registry,
                "it leads to plain http, which is not allowed there",
                host=url.netloc.decode("ascii", "replace"),
            )
        return url

    def _may_be_plain(self, url: httpx.URL) -> bool:
        host = f"[{url.host}]" if ":" in url.host else url.host
        named = {f"{host}:{url.port or _PORTS['http']}"} | ({host} if url.port is None else set())
        return bool(named & self._plain)
