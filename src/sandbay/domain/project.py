"""Projects, and the keys that reach them. A key is stored hashed; its secret is shown once."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sandbay.domain.ids import KeyId, ProjectId
from sandbay.domain.scope import UNCONFINED, Confinement


@dataclass(frozen=True, slots=True)
class Project:
    """The tenant. `scope_required`: each of its Sessions names a scope."""

    id: ProjectId
    name: str
    created_at: datetime
    revision: int = 1
    scope_required: bool = False


class KeyKind(StrEnum):
    """Credentials of one kind work nowhere else."""

    ADMINISTRATOR = "administrator"
    PROJECT = "project"


KEY_PREFIXES = {KeyKind.ADMINISTRATOR: "sba_", KeyKind.PROJECT: "sbp_"}


@dataclass(frozen=True, slots=True)
class Key:
    """`hash` is SHA-256 of the secret, which has 128 bits of its own and needs no salt."""

    id: KeyId
    kind: KeyKind
    name: str
    principal: str
    hash: str
    created_at: datetime
    project: ProjectId | None = None
    revoked_at: datetime | None = None
    confinement: Confinement = UNCONFINED
