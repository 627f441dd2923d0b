"""Registries that images come from, and what the installation knows to say to them."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Credentials:
    """For one registry, and for nobody else. Neither part is ever shown."""

    username: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RegistrySecret:
    """Credentials as they are kept: sealed, under the registry's canonical name."""

    registry: str
    sealed: str = field(repr=False)
    updated_at: datetime
