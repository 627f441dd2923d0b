"""The audit."""

from datetime import datetime
from typing import Any

from pydantic import Field

from sandbay.api.wire.base import Listing, Out
from sandbay.domain.canonical import plain
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
