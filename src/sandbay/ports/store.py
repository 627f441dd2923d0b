"""The durable state: `read(query)` and `apply(changes)`. The database is the only authority.

Contract: a query sees one consistent moment. All changes of one `apply` are one durable transaction, or
nothing. Each change states what it relies on (a revision, a generation, a free slot, an unused name); when
that does not hold, `Conflict` names the change and what is there instead, and nothing is written. Rows of
`releases`, `frozen_releases`, `audit` and superseded generations never change; the database itself refuses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from sandbay.domain.allocation import Allocation, AllocationState
from sandbay.domain.catalog import CatalogView, Image, ImageEntry
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Facts
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import AllocationId, ImageId, KeyId, NodeId, ProjectId, ReleaseId, SessionId, UploadId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.project import Key, Project
from sandbay.domain.readiness import Readiness
from sandbay.domain.release import ContentKey, Fault, Release, ReleaseState, Variant
from sandbay.domain.session import Session, SessionState
from sandbay.domain.want import Need

T_co = TypeVar("T_co", covariant=True)


# Records: what is stored, joined as the queries answer it


@dataclass(frozen=True)
class SessionRecord:
    """A Session with its frozen release and its newest allocation."""

    session: Session
    frozen: FrozenRelease
    allocation: Allocation | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """What an idempotency key was used for."""

    body_hash: str
    session: SessionId


@dataclass(frozen=True, slots=True)
class Upload:
    """Received bytes that registration may name until they expire."""

    id: UploadId
    digest: str
    size: int
    expires_at: datetime


@dataclass(frozen=True)
class AuditEntry:
    """Who did what to what. `outcome` is `done` or a reason's code."""

    id: str
    at: datetime
    principal: str
    action: str
    subject: str
    outcome: str = "done"
    details: Facts | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReadinessRow:
    """One cell of the matrix nodes × variants."""

    node: NodeId
    key: ContentKey
    readiness: Readiness
    pinned: bool


@dataclass(frozen=True)
class KnownVariant:
    """A variant with the release that it belongs to."""

    image: ImageId
    image_name: str
    release: ReleaseId
    number: int
    state: ReleaseState
    variant: Variant


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first; `after` is the id of the last item already seen. `limit` rows at most."""

    after: str | None = None
    limit: int = 100


# Queries


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
class SessionOf(Query[SessionRecord | None]):
    """One Session. With a project, what another project owns is as what does not exist."""

    id: SessionId
    project: ProjectId | None = None


@dataclass(frozen=True, slots=True)
class Sessions(Query[Sequence[SessionRecord]]):
    """Newest first; all projects when None; only these states when given."""

    project: ProjectId | None = None
    states: frozenset[SessionState] | None = None
    page: Page = Page()


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
    """Every reason to hold a variant: the default image's stable release (required, on every node), open
    allocations (on their node), wishes (on their node).
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
class Audit(Query[Sequence[AuditEntry]]):
    """Newest first; of one subject when given."""

    subject: str | None = None
    page: Page = Page()


# Changes. Each class says what it relies on.


class Change:
    """One write. What it relies on is checked in the transaction."""


@dataclass(frozen=True, slots=True)
class SetDeployment(Change):
    """Append a generation. Relies on `expected` being the current one (0: none yet) and on every pool that
    goes away, or changes its provider, having no Session that is not final (`in_use`).
    """

    deployment: Deployment
    expected: int


@dataclass(frozen=True, slots=True)
class AddImage(Change):
    """Relies on the name never having been used and on fewer than `limit` images."""

    image: Image
    limit: int


@dataclass(frozen=True, slots=True)
class ChangeImage(Change):
    """Replace all but id, name and created_at. Relies on the stored revision being `image.revision - 1`."""

    image: Image


@dataclass(frozen=True)
class AddRelease(Change):
    """Append a release, pending. Relies on its number being the next one, on no release of this image having
    the same set of content keys, and on fewer than `limit` releases of the image.
    """

    release: Release
    created_at: datetime
    limit: int


@dataclass(frozen=True, slots=True)
class MoveRelease(Change):
    """Relies on its state being one of `before`."""

    release: ReleaseId
    before: frozenset[ReleaseState]
    to: ReleaseState
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class MoveChannel(Change):
    """Point a channel at an active release, with a row of history. Relies on the stored revision being
    `expected` (0: the channel does not exist; None: whatever it is) and on the release being active.
    """

    image: ImageId
    channel: str
    number: int
    expected: int | None
    at: datetime
    principal: str
    why: str


@dataclass(frozen=True, slots=True)
class AddProject(Change):
    """Relies on the name being unused."""

    project: Project


@dataclass(frozen=True, slots=True)
class ChangeProject(Change):
    """Replace `runtime_image_id`. Relies on the stored revision being `project.revision - 1`."""

    project: Project


@dataclass(frozen=True, slots=True)
class AddKey(Change):
    """Store a key."""

    key: Key


@dataclass(frozen=True, slots=True)
class RevokeKey(Change):
    """Harmless when it is revoked already. Relies on the key being there, and the project's own when given."""

    key: KeyId
    at: datetime
    project: ProjectId | None = None


@dataclass(frozen=True)
class AdmitSession(Change):
    """Append the frozen release and the Session; with an idempotency key, relies on that being unused."""

    session: Session
    frozen: FrozenRelease
    idempotency_key: str | None = None
    body_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Reserve(Change):
    """Open an allocation. Relies on the node having fewer than `slots` open ones and the Session none."""

    allocation: Allocation
    slots: int
    at: datetime


@dataclass(frozen=True, slots=True)
class MoveSession(Change):
    """Relies on its state being one of `before`. What is not state, fault or waiting stays as it is;
    `waiting_for` and `wait_until` are cleared by every move; a final state sets `ended_at`.
    """

    session: SessionId
    before: frozenset[SessionState]
    to: SessionState
    at: datetime
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class MoveAllocation(Change):
    """Relies on its state being one of `before`."""

    allocation: AllocationId
    before: frozenset[AllocationState]
    to: AllocationState
    at: datetime
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class PutNode(Change):
    """A hello: insert or replace the node. Relies on the stored epoch being `node.epoch - 1` (0: a new node)."""

    node: Node


@dataclass(frozen=True, slots=True)
class SeeNode(Change):
    """Heard from; may have become warm. Relies on the epoch being current."""

    node: NodeId
    epoch: int
    at: datetime
    warm: bool


@dataclass(frozen=True, slots=True)
class PutReadiness(Change):
    """Store a cell; a first READY pins. Relies on the node's epoch being current and on the stored attempt
    being `after_attempt` (None: whatever is there, as after a hello).
    """

    node: NodeId
    epoch: int
    key: ContentKey
    readiness: Readiness
    after_attempt: int | None


@dataclass(frozen=True, slots=True)
class Unpin(Change):
    """End a pin: the grant to drop. Relies on nothing needing it there: no open allocation, no wish."""

    node: NodeId
    key: ContentKey


@dataclass(frozen=True, slots=True)
class AddWish(Change):
    """Want a variant on a node. Harmless when it is there."""

    key: ContentKey
    node: NodeId
    at: datetime


@dataclass(frozen=True, slots=True)
class DropWish(Change):
    """Want it there no longer. Harmless when it is gone."""

    key: ContentKey
    node: NodeId


@dataclass(frozen=True, slots=True)
class AddUpload(Change):
    """Record received bytes."""

    upload: Upload


@dataclass(frozen=True, slots=True)
class DropUpload(Change):
    """Harmless when it is gone."""

    id: UploadId


@dataclass(frozen=True, slots=True)
class AddAudit(Change):
    """Append an entry."""

    entry: AuditEntry


class ConflictKind(StrEnum):
    """What did not hold."""

    STALE = "stale"
    TAKEN = "taken"
    FULL = "full"
    IN_USE = "in_use"
    LIMIT = "limit"
    MISSING = "missing"


class Conflict(Exception):  # noqa: N818 - it is a word of the port, not a fault
    """A change relied on what does not hold. `current` is what is there: a revision, an id, a bound, a state."""

    def __init__(self, change: Change, kind: ConflictKind, current: object = None) -> None:
        """Name the change, what did not hold and what is there instead."""
        super().__init__(f"{type(change).__name__}: {kind} (current: {current})")
        self.change, self.kind, self.current = change, kind, current


class Store(Protocol):
    """One database."""

    def read(self, query: Query[T_co]) -> T_co:
        """Answer a query."""

    def apply(self, *changes: Change) -> None:
        """Apply all, in order, in one transaction. Raises `Conflict`."""

    def close(self) -> None:
        """End connections and threads."""
