"""Registries that the installation reads from."""

from dataclasses import dataclass
from typing import Any

from sandbay.sdk.wire import Resource, take


@dataclass(frozen=True, kw_only=True)
class RegistrySecret(Resource):
    """That the installation has credentials for a registry; nothing of them."""

    registry: str
    updated_at: str | None = None

    @classmethod
    def of(cls, data: Any) -> "RegistrySecret":
        """From the secret's resource."""
        return take(cls, data)
