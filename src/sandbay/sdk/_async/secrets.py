"""A project's secrets. Their values go in and never come out."""

from collections.abc import Sequence

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.secrets import Secret
from sandbay.sdk.transport import segment


class AsyncSecrets:
    """By name. A Session's variable holds one with `env={"GH_TOKEN": {"secret": "gh"}}`."""

    def __init__(self, transport: AsyncTransport, path: str = "/v1/secrets") -> None:
        """`path` is where the project's secrets are."""
        self._transport, self._path = transport, path

    async def list(self) -> Sequence[Secret]:
        """Their names."""
        return [Secret.of(item) async for item in self._transport.pages(self._path)]

    async def put(self, name: str, value: str) -> Secret:
        """Keep it, in place of what was kept before. Raises `AccessError` (forbidden), `StateError` (limit_reached)."""
        call = AsyncCall("PUT", f"{self._path}/{segment(name)}", json={"value": value})
        return Secret.of(await self._transport.send(call))

    async def delete(self, name: str) -> None:
        """Forget it. Raises `UnknownReferenceError` (not_found)."""
        await self._transport.send(AsyncCall("DELETE", f"{self._path}/{segment(name)}"))
