"""`/v1/sessions`: one sandbox each; `sandbox/sessions/{id}`: the same for administrators."""

import threading
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from sandbay.api.calls import Name, TheActor, TheCore, ThePage, project_of, waiting
from sandbay.api.documented import SELECTING, also, refusing
from sandbay.api.strict import RoomyRoute, StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.sessions import (
    AdminSessionOut,
    SessionIn,
    SessionList,
    SessionOut,
    admin_session_out,
    session_out,
)
from sandbay.app.admit_session import admit_session
from sandbay.app.core import Core
from sandbay.app.sessions import booted_of, end_session, find_session, list_sessions, progress_of, wait_while
from sandbay.app.suspend import resume_session, suspend_session
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL, SessionState
from sandbay.ports.records import SessionRecord

router = APIRouter(prefix="/v1/sessions", route_class=RoomyRoute, tags=["sessions"])
admin_router = APIRouter(prefix="/core/v1/sandbox/sessions", route_class=StrictRoute, tags=["sessions"])

LONGEST_POLL = 30
_STARTING = frozenset({SessionState.STARTING})
_UNPLACED = (
    *(Reason.IMAGE_NOT_READY, Reason.NO_CAPACITY, Reason.NO_NODE_ONLINE, Reason.POOL_PAUSED),
    *(Reason.IMAGE_PREPARE_FAILED, Reason.NETWORK_UNSUPPORTED, Reason.RESOURCE_UNSUPPORTED),
)
_NAMED = (Reason.SECRET_UNKNOWN, Reason.TEMPLATE_UNKNOWN, Reason.SCOPE_UNKNOWN, Reason.SCOPE_REQUIRED)
_IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="A repeated request with this key answers with the Session that the first one made.",
    ),
]


def _shown(core: Core, record: SessionRecord) -> SessionOut:
    return session_out(record, progress_of(core, record))


def admin_session(core: Core, record: SessionRecord) -> AdminSessionOut:
    """A Session with where it runs."""
    return admin_session_out(record, progress_of(core, record), booted_of(core, record))


@router.post(
    "",
    status_code=201,
    responses=also(200, SessionOut, "The Session that this `Idempotency-Key` made.")
    | refusing(*SELECTING, *_UNPLACED, *_NAMED, Reason.REQUIREMENTS_UNMET, Reason.IDEMPOTENCY_CONFLICT),
)
async def post_session(
    request: Request,
    response: Response,
    core: TheCore,
    actor: TheActor,
    body: SessionIn,
    idempotency_key: _IdempotencyKey = None,
) -> SessionOut:
    """Admit a Session on exactly one image, or refuse by name and leave nothing.

    The answer comes when it is running, failed, waiting, or begins to be prepared from its Template: `progress` tells
    how far that is. One that failed to start is answered as it is.
    """

    def admit(gone: threading.Event) -> tuple[SessionOut, bool]:
        admitted = admit_session(core, actor, body.asked(), idempotency_key)
        record = wait_while(core, admitted.record, _STARTING, core.settings.start_wait, gone, setup=False)
        return _shown(core, record), admitted.created

    session, created = await waiting(request, admit)
    if not created:
        response.status_code = 200
    return session


@router.get("", responses=refusing())
def get_sessions(core: TheCore, actor: TheActor, asked: ThePage) -> SessionList:
    """List this project's Sessions, newest first."""
    records = list_sessions(core, project_of(actor), replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(records, asked, lambda record: record.session.id)
    return SessionList(items=[_shown(core, record) for record in shown], next=following)


@router.get("/{session}", responses=refusing(Reason.NOT_FOUND))
async def get_session(
    request: Request,
    core: TheCore,
    actor: TheActor,
    session: Name,
    wait: Annotated[int, Query(ge=0, le=LONGEST_POLL, description="Seconds to wait for a change of status.")] = 0,
    status: Annotated[
        SessionState | None, Query(description="The status to wait to be left; the current one when omitted.")
    ] = None,
) -> SessionOut:
    """Show a Session; with `wait`, when its status is no longer `status` or the time is over."""

    def look(gone: threading.Event) -> SessionOut:
        record = find_session(core, SessionId(session), project_of(actor))
        if wait:
            record = wait_while(core, record, frozenset({status or record.session.state}), wait, gone)
        return _shown(core, record)

    return await waiting(request, look)


@router.delete(
    "/{session}",
    status_code=202,
    responses=also(200, SessionOut, "It has ended.") | refusing(Reason.NOT_FOUND, Reason.REVISION_STALE),
)
def delete_session(core: TheCore, actor: TheActor, session: Name, response: Response) -> SessionOut:
    """Begin to end a Session, whatever it is doing. Repeating it is fine."""
    record = end_session(core, actor, SessionId(session))
    if record.session.state in FINAL:
        response.status_code = 200
    return _shown(core, record)


@router.post(
    "/{session}/suspend",
    status_code=202,
    responses=also(200, SessionOut, "It is suspended.")
    | refusing(
        *(Reason.NOT_FOUND, Reason.NOT_RUNNING, Reason.ALREADY_ENDED, Reason.ABILITY_UNSUPPORTED),
        *(Reason.NO_NODE_ONLINE, Reason.REVISION_STALE),
    ),
)
def post_suspend(core: TheCore, actor: TheActor, session: Name, response: Response) -> SessionOut:
    """Begin to suspend a Session: its files are kept, its processes end. Repeating it is fine."""
    record = suspend_session(core, actor, SessionId(session))
    if record.session.state is SessionState.SUSPENDED:
        response.status_code = 200
    return _shown(core, record)


@router.post(
    "/{session}/resume",
    status_code=202,
    responses=also(200, SessionOut, "It runs.")
    | refusing(
        *(Reason.NOT_FOUND, Reason.NOT_SUSPENDED, Reason.ALREADY_ENDED, Reason.REVISION_STALE),
        *(Reason.SNAPSHOT_NODE_OFFLINE, Reason.IMAGE_LOST, Reason.IMAGE_NOT_READY, Reason.IMAGE_PREPARE_FAILED),
        *(Reason.NO_CAPACITY, Reason.POOL_PAUSED, Reason.RESOURCE_UNSUPPORTED, Reason.IMAGE_UNSUPPORTED),
    ),
)
def post_resume(core: TheCore, actor: TheActor, session: Name, response: Response) -> SessionOut:
    """Begin to resume a suspended Session on the release that it was admitted on. Repeating it is fine.

    When it cannot be started it is suspended again, with the `reason`: nothing is lost.
    """
    record = resume_session(core, actor, SessionId(session))
    if record.session.state is SessionState.RUNNING:
        response.status_code = 200
    return _shown(core, record)


@admin_router.get("/{session}", responses=refusing(Reason.NOT_FOUND))
def get_any_session(core: TheCore, session: Name) -> AdminSessionOut:
    """Show any Session, with its node, runtime and first process on the host."""
    return admin_session(core, find_session(core, SessionId(session), None))
