"""`audit`: who did what."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from sandbay.api.calls import TheCore, ThePage
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.audit import AuditList, audit_out
from sandbay.api.wire.base import NO_NUL, page_of_more
from sandbay.app.audit import entries

router = APIRouter(prefix="/core/v1/audit", route_class=StrictRoute, tags=["audit"])


@router.get("", responses=refusing())
def get_audit(
    core: TheCore,
    asked: ThePage,
    subject: Annotated[str | None, Query(max_length=512, pattern=NO_NUL, description="Only of this subject.")] = None,
) -> AuditList:
    """List the audit, newest first."""
    rows = entries(core, subject, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(rows, asked, lambda entry: entry.id)
    return AuditList(items=[audit_out(entry) for entry in shown], next=following)
