"""The audit."""

from datetime import datetime
from typing import Any

from pydantic import Field

from sandbay.api.wire.base import Listing, Out
from sandbay.api.wire.sessions import FrozenImageOut, StepOut, frozen_image_out, trail_out
from sandbay.app.audit import Account
from sandbay.domain.canonical import plain
from sandbay.domain.session import SessionState
from sandbay.ports.records import AuditEntry


class AuditOut(Out):
    """Who did what to what."""

    id: str = Field(description="Its id.")
    at: datetime = Field(description="When.")
    principal: str = Field(description="Who.")
    action: str = Field(description="What was done or tried.")
    subject: str = Field(description="To what.")
    outcome: str = Field(description="`done`, or the code of the refusal.")
    details: dict[str, Any] = Field(description="Facts: from, to, digests.")
    request_id: str | None = Field(description="The request that did it.")


class AuditList(Listing[AuditOut]):
    """Newest first."""


class SessionAccountOut(Out):
    """Which release a Session ran, and why."""

    session: str = Field(description="The Session's id.")
    project: str = Field(description="The project's id.")
    principal: str = Field(description="Who created it.")
    created_at: datetime = Field(description="When it was admitted.")
    ended_at: datetime | None = Field(description="When it ended; null while it lives.")
    status: SessionState = Field(description="What became of it.")
    image: FrozenImageOut = Field(description="The one image that it runs, for its whole life.")
    frozen_digest: str = Field(description="The digest of the row that was frozen at admission.")
    generation: int = Field(description="The deployment's generation that it was decided under.")
    trail: list[StepOut] = Field(description="How that image was chosen.")
    entries: list[AuditOut] = Field(description="What was done to it, oldest first.")


def account_out(account: Account) -> SessionAccountOut:
    """From the use case."""
    session, frozen = account.record.session, account.record.frozen
    return SessionAccountOut(
        session=session.id,
        project=session.project,
        principal=session.principal,
        created_at=session.created_at,
        ended_at=session.ended_at,
        status=session.state,
        image=frozen_image_out(frozen),
        frozen_digest=session.frozen_digest,
        generation=frozen.generation,
        trail=trail_out(frozen.trail),
        entries=[audit_out(entry) for entry in account.entries],
    )


def audit_out(entry: AuditEntry) -> AuditOut:
    """From the record."""
    return AuditOut(
        id=entry.id,
        at=entry.at,
        principal=entry.principal,
        action=entry.action,
        subject=entry.subject,
        outcome=entry.outcome,
        details=plain(dict(entry.details or {})),
        request_id=entry.request_id,
    )
