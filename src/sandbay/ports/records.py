"""Rows of the store as its queries answer them, where a domain noun alone does not say it all."""

from dataclasses import dataclass
from datetime import datetime

from sandbay.domain.allocation import Allocation
from sandbay.domain.contract import Checked
from sandbay.domain.errors import Facts
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ImageId, NodeId, PublishId, ReleaseId, SessionId, SnapshotId, UploadId
from sandbay.domain.readiness import Readiness
from sandbay.domain.release import ContentKey, ReleaseState, Variant
from sandbay.domain.session import Session


@dataclass(frozen=True)
class SessionRecord:
    """A Session with its frozen release, its newest allocation, and what is kept of it while it is suspended."""

    session: Session
    frozen: FrozenRelease
    allocation: Allocation | None = None
    snapshot: SnapshotId | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """What an idempotency key was used for."""

    body_hash: str
    session: SessionId


@dataclass(frozen=True, slots=True)
class Started:
    """What an idempotency key was used for by a publish."""

    body_hash: str
    id: PublishId


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


@dataclass(frozen=True)
class ReportRow:
    """What one check of one variant saw, and on which node."""

    key: ContentKey
    node: NodeId
    checked: Checked


@dataclass(frozen=True, slots=True)
class Page:
    """Newest first; `after` is the id of the last item already seen. `limit` rows at most."""

    after: str | None = None
    limit: int = 100


FIRST_PAGE = Page()
