# Made by `./dev sdk` from _async/secrets.py, which is the one to edit.
"""A project's secrets. Their values go in and never come out."""

from collections.abc import Sequence

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.secrets import Secret
from sandbay.sdk.transport import segment


class Secrets:
    """By name. A Session's variable holds one with `env={"GH_TOKEN": {"secret": "gh"}}`."""

    def __init__(self, transport: Transport, path: str = "/v1/secrets") -> None:
        """`path` is where the project's secrets are."""
        self._transport, self._path = transport, path

    def list(self) -> Sequence[Secret]:
        """Their names."""
        return [Secret.of(item) for item in self._transport.pages(self._path)]

    def put(self, name: str, value: str) -> Secret:
        """Keep it, in place of what was kept before. Raises `AccessError` (forbidden), `StateError` (limit_reached)."""
        call = Call("PUT", f"{self._path}/{segment(name)}", json={"value": value})
        return Secret.of(self._transport.send(call))

    def delete(self, name: str) -> None:
        """Forget it. Raises `UnknownReferenceError` (not_found)."""
        self._transport.send(Call("DELETE", f"{self._path}/{segment(name)}"))
