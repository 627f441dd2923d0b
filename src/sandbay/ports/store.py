"""The durable state: `read(query)` and `apply(changes)`. The database is the only authority.

Contract: a query sees one consistent moment. All changes of one `apply` are one durable transaction, or
nothing. Each change states what it relies on (a revision, a generation, a free slot, an unused name); when
that does not hold, `Conflict` names the change and what is there instead, and nothing is written. Rows of
`releases`, `frozen_releases`, `session_events`, `audit` and superseded generations never change; the database itself
refuses.

A database that cannot be reached, or lost in the middle, is `RefusedError` with `database_unavailable`: it passes, and
is never told as a `Conflict`. After an `apply` it may be unknown whether the changes were made: look again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from sandbay.domain.catalog import CatalogView, ImageEntry
from sandbay.domain.contract import CheckOrder
from sandbay.domain.deployment import Deployment
from sandbay.domain.events import SessionEvent
from sandbay.domain.ids import NodeId, ProjectId, PublishId, ReleaseId, SessionId, UploadId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.project import Key, Project
from sandbay.domain.publish import Publish, PublishPhase
from sandbay.domain.registry import RegistrySecret
from sandbay.domain.release import ContentKey
from sandbay.domain.session import SessionState
from sandbay.domain.template import FrozenTemplate, Template
from sandbay.domain.want import Need
from sandbay.ports.changes import Change
from sandbay.ports.records import (
    FIRST_PAGE,
    AuditEntry,
    Created,
    KnownVariant,
    Page,
    ReadinessRow,
    ReportRow,
    SessionRecord,
    Started,
    Upload,
)

T_co = TypeVar("T_co", covariant=True)


class Query(Generic[T_co]):
    """A question whose answer has type `T_co`."""


@dataclass(frozen=True, slots=True)
class TheDeployment(Query[Deployment | None]):
    """The current generation; None before the installation is made."""


@dataclass(frozen=True, slots=True)
class CatalogOf(Query[CatalogView]):
    """The images that these names, image ids and release ids can mean, whole. Unknown ones are left out."""

    names: frozenset[str] = frozenset()
    releases: frozenset[ReleaseId] = frozenset()


@dataclass(frozen=True, slots=True)
class Images(Query[Sequence[ImageEntry]]):
    """All images, by name, with releases and channels."""


@dataclass(frozen=True, slots=True)
class VariantsOf(Query[Sequence[KnownVariant]]):
    """Variants by content key; all variants of releases that are not rejected when `keys` is None."""

    keys: frozenset[ContentKey] | None = None


@dataclass(frozen=True, slots=True)
class DueChecks(Query[Sequence[CheckOrder]]):
    """Every variant of what is not rejected that has no report yet of the last check asked for, by release."""


@dataclass(frozen=True, slots=True)
class ReportsOf(Query[Sequence[ReportRow]]):
    """What every check of a release saw, newest first."""

    release: ReleaseId


@dataclass(frozen=True, slots=True)
class KeyOf(Query[Key | None]):
    """By hash of the secret; revoked ones too."""

    hash: str


@dataclass(frozen=True, slots=True)
class Keys(Query[Sequence[Key]]):
    """Keys of a project, or the administrator's when None."""

    project: ProjectId | None = None


@dataclass(frozen=True, slots=True)
class ProjectOf(Query[Project | None]):
    """By id or name."""

    name_or_id: str


@dataclass(frozen=True, slots=True)
class Projects(Query[Sequence[Project]]):
    """All, by name."""


@dataclass(frozen=True, slots=True)
class TemplateOf(Query[Template | None]):
    """A project's Template by id or name."""

    project: ProjectId
    name_or_id: str


@dataclass(frozen=True, slots=True)
class Templates(Query[Sequence[Template]]):
    """A project's Templates by name, in outline: without the bytes of their files. `page.after` is a name."""

    project: ProjectId
    page: Page = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class FrozenTemplateOf(Query[FrozenTemplate | None]):
    """By digest."""

    digest: str


@dataclass(frozen=True, slots=True)
class SessionOf(Query[SessionRecord | None]):
    """One Session. With a project, what another project owns is as what does not exist."""

    id: SessionId
    project: ProjectId | None = None


@dataclass(frozen=True, slots=True)
class Sessions(Query[Sequence[SessionRecord]]):
    """Newest first; all projects when None; only these states when given."""

    project: ProjectId | None = None
    states: frozenset[SessionState] | None = None
    page: Page = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class SessionEvents(Query[Sequence[SessionEvent]]):
    """Which states a Session came to, in order; those whose number is greater than `after`."""

    session: SessionId
    after: int = 0


@dataclass(frozen=True, slots=True)
class CreatedWith(Query[Created | None]):
    """What this project's idempotency key was used for."""

    project: ProjectId
    key: str


@dataclass(frozen=True, slots=True)
class Fleet(Query[Sequence[NodeView]]):
    """Every node, with its readiness for one variant and its open allocations; `now` decides who is online."""

    key: ContentKey
    now: datetime


@dataclass(frozen=True, slots=True)
class Nodes(Query[Sequence[Node]]):
    """Every node, by name."""


@dataclass(frozen=True, slots=True)
class OpenAllocations(Query[Sequence[SessionRecord]]):
    """What a node has to run or to stop: each open allocation with its Session and frozen release."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class Needs(Query[Sequence[Need]]):
    """Every reason to hold a variant.

    The default image's stable release (required, on every node), what waits to be promoted (the same), open
    allocations, kept state of suspended Sessions and wishes (each on their node).
    """


@dataclass(frozen=True, slots=True)
class ReadinessRows(Query[Sequence[ReadinessRow]]):
    """All cells that exist, of one variant or of all."""

    key: ContentKey | None = None


@dataclass(frozen=True, slots=True)
class UploadOf(Query[Upload | None]):
    """By id."""

    id: UploadId


@dataclass(frozen=True, slots=True)
class ExpiredUploads(Query[Sequence[Upload]]):
    """Those whose time is over."""

    now: datetime


@dataclass(frozen=True, slots=True)
class PublishOf(Query[Publish | None]):
    """By id."""

    id: PublishId


@dataclass(frozen=True, slots=True)
class Publishes(Query[Sequence[Publish]]):
    """Newest first; of one image, only in these phases, when given."""

    image: str | None = None
    phases: frozenset[PublishPhase] | None = None
    page: Page = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class StartedWith(Query[Started | None]):
    """What a publish's idempotency key was used for."""

    key: str


@dataclass(frozen=True, slots=True)
class RegistrySecretOf(Query[RegistrySecret | None]):
    """By the registry's canonical name."""

    registry: str


@dataclass(frozen=True, slots=True)
class RegistrySecrets(Query[Sequence[RegistrySecret]]):
    """All, by registry."""


@dataclass(frozen=True, slots=True)
class Audit(Query[Sequence[AuditEntry]]):
    """Newest first; of one subject when given."""

    subject: str | None = None
    page: Page = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class AuditInOrder(Query[Sequence[tuple[int, AuditEntry]]]):
    """As written: each with its place, those whose place is greater than `after`."""

    after: int = 0
    limit: int = 1_000


class Store(Protocol):
    """One database."""

    def read(self, query: Query[T_co]) -> T_co:
        """Answer a query."""

    def apply(self, *changes: Change) -> None:
        """Apply all, in order, in one transaction. Raises `Conflict`."""

    def close(self) -> None:
        """End connections and threads."""
