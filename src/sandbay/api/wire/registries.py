"""Secrets for registries."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import In, Listing, Out
from sandbay.domain.registry import Credentials, RegistrySecret

Username = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f:]+$")]
Password = Annotated[str, Field(min_length=1, max_length=16_384, pattern=r"^[^\x00-\x1f\x7f]+$")]


class RegistrySecretIn(In):
    """What the registry takes."""

    username: Username = Field(description="The user, as basic authentication knows it.")
    password: Password = Field(description="The password or access token.", json_schema_extra={"writeOnly": True})

    def credentials(self) -> Credentials:
        """As the use case takes it."""
        return Credentials(self.username, self.password)


class RegistrySecretOut(Out):
    """That there is a secret, and nothing of it."""

    registry: str = Field(description="host[:port].")
    updated_at: datetime = Field(description="When it was put.")


class RegistrySecretList(Listing[RegistrySecretOut]):
    """By registry."""


def registry_secret_out(secret: RegistrySecret) -> RegistrySecretOut:
    """From the domain."""
    return RegistrySecretOut(registry=secret.registry, updated_at=secret.updated_at)
