"""`audit`: who did what."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from sandbay.api.calls import Name, TheCore, ThePage
from sandbay.api.documented import bytes_of, refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.audit import AuditList, SessionAccountOut, account_out, audit_out
from sandbay.api.wire.base import NO_NUL, page_of_more
from sandbay.app.audit import account_of, entries, exported
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason

JSON_LINES = "application/x-ndjson"

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


@router.get("/export", response_class=StreamingResponse, responses=bytes_of(JSON_LINES) | refusing())
def get_audit_export(core: TheCore) -> StreamingResponse:
    """Take the whole audit out, oldest first, as JSON lines of which each holds the digest of the one before.

    The last line tells how many there are. `sandbay audit verify FILE` looks whether all is as it was written.
    """
    return StreamingResponse(exported(core), media_type=JSON_LINES)


@router.get("/sessions/{session}", responses=refusing(Reason.NOT_FOUND))
def get_audit_session(core: TheCore, session: Name) -> SessionAccountOut:
    """Tell which release a Session ran and why, however long ago, and what was done to it."""
    return account_out(account_of(core, SessionId(session)))
