# Made by `./dev sdk` from _async/registries.py, which is the one to edit.
"""The installation's credentials for registries. They go in and never come out."""

from collections.abc import Sequence

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.registries import RegistrySecret
from sandbay.sdk.transport import segment

_SECRETS = "/core/v1/sandbox/registry-secrets"


class Registries:
    """One secret for each registry, by its `host[:port]`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[RegistrySecret]:
        """The registries that there is a secret for."""
        return [RegistrySecret.of(item) for item in self._transport.pages(_SECRETS)]

    def put(self, registry: str, username: str, password: str) -> RegistrySecret:
        """Keep credentials, in place of those before. Raises `UnknownReferenceError` (invalid_reference)."""
        body = {"username": username, "password": password}
        return RegistrySecret.of(self._transport.send(Call("PUT", f"{_SECRETS}/{segment(registry)}", json=body)))

    def delete(self, registry: str) -> None:
        """Forget them. Raises `UnknownReferenceError` (not_found)."""
        self._transport.send(Call("DELETE", f"{_SECRETS}/{segment(registry)}"))
