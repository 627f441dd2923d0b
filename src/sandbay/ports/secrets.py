"""Projects' secrets in the store, sealed: the changes and the queries of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.domain.ids import ProjectId
from sandbay.domain.secret import Secret
from sandbay.ports.changes import Change
from sandbay.ports.store import Query


@dataclass(frozen=True, slots=True)
class PutSecret(Change):
    """Keep it, in place of the one of the same name. Relies on fewer than `limit` others in the project."""

    secret: Secret
    limit: int


@dataclass(frozen=True, slots=True)
class DropSecret(Change):
    """Forget it (`MISSING` when there is none)."""

    project: ProjectId
    name: str


@dataclass(frozen=True, slots=True)
class SecretsOf(Query[Sequence[Secret]]):
    """A project's, by name."""

    project: ProjectId
