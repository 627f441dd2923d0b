"""The writes of the store: one class each, and each says what it relies on.

That is checked in the transaction that applies it (`ports.store`), in the order in which it is told; `ConflictKind`
says what each refusal is called and what `current` is. A row that is not there is `MISSING`, an id that is, `TAKEN`.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sandbay.domain.allocation import Allocation, AllocationState
from sandbay.domain.catalog import Image
from sandbay.domain.contract import Checked, Contract
from sandbay.domain.deployment import Deployment
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import (
    AllocationId,
    ImageId,
    KeyId,
    NodeId,
    ProjectId,
    ReleaseId,
    SessionId,
    TemplateId,
    UploadId,
)
from sandbay.domain.life import EndCause
from sandbay.domain.node import Node
from sandbay.domain.project import Key, Project
from sandbay.domain.publish import Publish
from sandbay.domain.readiness import Readiness
from sandbay.domain.registry import RegistrySecret
from sandbay.domain.release import ContentKey, Fault, Release, ReleaseState
from sandbay.domain.session import Session, SessionState
from sandbay.domain.template import FrozenTemplate, Template
from sandbay.domain.want import Why
from sandbay.ports.records import AuditEntry, Upload


class Change:
    """One write. What it relies on is checked in the transaction."""


@dataclass(frozen=True, slots=True)
class SetDeployment(Change):
    """Append a generation.

    Relies on `expected` being the current one (0: none yet) and on every pool that goes away, or changes its
    provider, having no Session that is not final and no open allocation (`IN_USE`, current: the pools' names). The
    generation is `expected + 1`; anything else is a ValueError.
    """

    deployment: Deployment
    expected: int


@dataclass(frozen=True, slots=True)
class AddImage(Change):
    """Relies on the name never having been used (`TAKEN`, current: the image) and on fewer than `limit` images."""

    image: Image
    limit: int


@dataclass(frozen=True, slots=True)
class ChangeImage(Change):
    """Replace all but id, name and created_at. Relies on the stored revision being `image.revision - 1`."""

    image: Image


@dataclass(frozen=True)
class AddRelease(Change):
    """Append a release, pending.

    Relies on no release of this image having the same set of content keys (`TAKEN`, current: that release), on its
    number being the next one (`STALE`, current: the last), and on fewer than `limit` releases of the image.
    """

    release: Release
    created_at: datetime
    limit: int
    promote: str | None = None
    contract: Contract = field(default_factory=Contract)


@dataclass(frozen=True, slots=True)
class MoveRelease(Change):
    """Move where it stands. The fault becomes what is given; `promote` stays.

    Relies, to be retired or rejected, on no channel pointing at it (`IN_USE`, current: a channel's name), and on its
    state being one of `before`.
    """

    release: ReleaseId
    before: frozenset[ReleaseState]
    to: ReleaseState
    fault: Fault | None = None


@dataclass(frozen=True)
class SetContract(Change):
    """Replace what a release promises, or ask for one check more.

    Relies on the stored number of checks being `contract.checks - 1` (0: there is no contract yet).
    """

    release: ReleaseId
    contract: Contract


@dataclass(frozen=True)
class AddReport(Change):
    """Append what a check of one variant saw.

    Relies on the check being the last that was asked for (`STALE`, current: that number) and on the variant having no
    report of it yet (`TAKEN`, current: the release).
    """

    release: ReleaseId
    key: ContentKey
    node: NodeId
    checked: Checked


@dataclass(frozen=True, slots=True)
class MoveChannel(Change):
    """Point a channel at an active release, with a row of history.

    Relies on the release being active (`STALE`, current: its state) and on the stored revision being `expected` (0: the
    channel does not exist; None: whatever it is).
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
    """Relies on the name being unused (`TAKEN`, current: the project)."""

    project: Project


@dataclass(frozen=True, slots=True)
class ChangeProject(Change):
    """Replace `scope_required`. Relies on the stored revision being `project.revision - 1`."""

    project: Project


@dataclass(frozen=True, slots=True)
class AddKey(Change):
    """Relies on the hash being unused (`TAKEN`, current: the key)."""

    key: Key


@dataclass(frozen=True, slots=True)
class RevokeKey(Change):
    """Harmless when it is revoked already. Relies on the key being there, and the project's own when given."""

    key: KeyId
    at: datetime
    project: ProjectId | None = None


@dataclass(frozen=True)
class AddTemplate(Change):
    """Relies on the name being unused in its project (`TAKEN`, current: that Template), and on fewer than `limit`."""

    template: Template
    limit: int


@dataclass(frozen=True)
class ChangeTemplate(Change):
    """Replace name, content and updated_at.

    Relies on the stored revision being `template.revision - 1`, and on no other having the name (`TAKEN`, current:
    that Template).
    """

    template: Template


@dataclass(frozen=True, slots=True)
class DropTemplate(Change):
    """Forget it; what Sessions keep of it stays. Relies on the stored revision being `revision`."""

    template: TemplateId
    revision: int


@dataclass(frozen=True)
class AdmitSession(Change):
    """Append the frozen release, the frozen Template unless one of that digest is there, and the Session.

    Relies, with an idempotency key, on that being unused by the project (`TAKEN`, current: the Session it was used
    for), and on the frozen release's generation being the current one. A Session whose digest is not the frozen
    release's, or whose frozen Template is another one, is a ValueError.
    """

    session: Session
    frozen: FrozenRelease
    idempotency_key: str | None = None
    body_hash: str | None = None
    template: FrozenTemplate | None = None


@dataclass(frozen=True, slots=True)
class Reserve(Change):
    """Open an allocation.

    Relies on the Session having none open (`TAKEN`, current: that allocation), on the node being READY (`STALE`,
    current: the state) and pinned (`STALE`, current: `unpinned`) for `key`, since what is being dropped is no place
    to start, and on its having fewer than `slots` open ones (`FULL`). A `key` that is not the frozen release's is a
    ValueError.
    """

    allocation: Allocation
    key: ContentKey
    slots: int
    at: datetime


@dataclass(frozen=True, slots=True)
class MoveSession(Change):
    """Relies on its state being one of `before`; an event tells of it, as of the admission.

    The cause, and of one that ends the fault, stay when none is given; waiting and foretelling go. Final: `ended_at`.
    """

    session: SessionId
    before: frozenset[SessionState]
    to: SessionState
    at: datetime
    fault: Fault | None = None
    because: EndCause | None = None


@dataclass(frozen=True, slots=True)
class MoveAllocation(Change):
    """Relies on its state being one of `before`. A fault stays when none is given."""

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
    """Store a cell; a first READY pins.

    Relies on the node's epoch being current and on the stored attempt being `after_attempt` (None: whatever is there,
    as after a hello).
    """

    node: NodeId
    epoch: int
    key: ContentKey
    readiness: Readiness
    after_attempt: int | None


@dataclass(frozen=True, slots=True)
class Unpin(Change):
    """End a pin: the grant to drop. A READY cell becomes EVICTING in the same moment.

    Relies on nothing needing it: no open allocation of it on the node and no waiting Session (`IN_USE`, current: a
    Session), no wish there (`IN_USE`, current: `a wish`). Harmless when the pin has ended.
    """

    node: NodeId
    key: ContentKey


@dataclass(frozen=True, slots=True)
class AddWish(Change):
    """Want a variant on a node, for demand (`WISH`) or ahead of it (`CACHED`). The stronger of two wishes stays."""

    key: ContentKey
    node: NodeId
    at: datetime
    why: Why = Why.WISH


@dataclass(frozen=True, slots=True)
class DropWish(Change):
    """Want it there no longer. Harmless when it is gone, or while a release with this content waits to be proved."""

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


@dataclass(frozen=True)
class AddPublish(Change):
    """Append it.

    Relies, with an idempotency key, on that being unused by publishes (`TAKEN`, current: the publish it was used for).
    """

    publish: Publish
    idempotency_key: str | None = None
    body_hash: str | None = None


@dataclass(frozen=True)
class ChangePublish(Change):
    """Replace what moves.

    Relies, to be under way, on no other publish of the image being that (`TAKEN`, current: that publish); on the move
    being legal (`STALE`, current: the phase); and on the stored revision being `publish.revision - 1`.
    """

    publish: Publish


@dataclass(frozen=True, slots=True)
class PutRegistrySecret(Change):
    """Keep it, in place of the one of the same registry."""

    secret: RegistrySecret


@dataclass(frozen=True, slots=True)
class DropRegistrySecret(Change):
    """Forget it (`MISSING` when there is none)."""

    registry: str


@dataclass(frozen=True, slots=True)
class AddAudit(Change):
    """Append an entry."""

    entry: AuditEntry


class ConflictKind(StrEnum):
    """What did not hold, and what `current` then is unless the change tells otherwise.

    STALE: the stored revision, number, generation, epoch, attempt (0: there is none) or state. TAKEN: the id that has
    it, None when the id itself is what is taken. FULL: how many are open. IN_USE: who uses it. LIMIT: the limit.
    MISSING: None.
    """

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
