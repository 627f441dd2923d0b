"""The installation's credentials for registries. They go in and never come out."""

from collections.abc import Sequence

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.registries import RegistrySecret
from sandbay.sdk.transport import segment

_SECRETS = "/core/v1/sandbox/registry-secrets"


class AsyncRegistries:
    """One secret for each registry, by its `host[:port]`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[RegistrySecret]:
        """The registries that there is a secret for."""
        return [RegistrySecret.of(item) async for item in self._transport.pages(_SECRETS)]

    async def put(self, registry: str, username: str, password: str) -> RegistrySecret:
        """Keep credentials, in place of those before. Raises `UnknownReferenceError` (invalid_reference)."""
        body = {"username": username, "password": password}
        return RegistrySecret.of(
            await self._transport.send(AsyncCall("PUT", f"{_SECRETS}/{segment(registry)}", json=body))
        )

    async def delete(self, registry: str) -> None:
        """Forget them. Raises `UnknownReferenceError` (not_found)."""
        await self._transport.send(AsyncCall("DELETE", f"{_SECRETS}/{segment(registry)}"))
