"""Live views as server-sent events: one Session, or the whole installation. How they work is told in `api.live`."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from sandbay.api.calls import Name, TheActor, TheCore, project_of
from sandbay.api.documented import refusing
from sandbay.api.live import LastEventId, Live, News, Snapshot, Snapshots, event, streamed
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import Out
from sandbay.api.wire.images import image_out
from sandbay.api.wire.nodes import node_out
from sandbay.api.wire.sessions import admin_session_out, progress_out, session_state_out
from sandbay.app.core import Core
from sandbay.app.holdings import list_nodes
from sandbay.app.images import list_images
from sandbay.app.live import live_sessions
from sandbay.app.select import current_deployment
from sandbay.app.sessions import find_session, progress_of, session_events
from sandbay.domain.ids import ProjectId, SessionId
from sandbay.domain.reasons import Reason
from sandbay.domain.session import FINAL

router = APIRouter(route_class=StrictRoute, tags=["events"])

_OF_SESSION = (
    "Event `state`, with an id: `{number, status, at, waiting_for, reason}`, each state that the Session came to, from"
    " its admission to its end. Event `progress`: as `progress` of the Session, how far the image or its setup is."
)
_OF_ALL = "Events `session`, `node`, `image`, each as its resource; `gone` with `{event, id}`."


class SessionView:
    """A Session's events, as they were written down; between them how far the image is that it waits for."""

    def __init__(self, core: Core, session: SessionId, project: ProjectId, after: int) -> None:
        """`after` is the number of the last event that the reader knows."""
        self._core, self._session, self._project, self._after = core, session, project, after
        self._progress = ""

    def news(self) -> News:
        """Refuses with `not_found`."""
        # The Session first: an event that is written in between is told at the next look, and is never the last then.
        record = find_session(self._core, self._session, self._project)
        states = session_events(self._core, self._session, self._after)
        news = [event("state", session_state_out(it).model_dump_json(), str(it.number)) for it in states]
        if states:
            self._after = states[-1].number
        return News(
            [*news, *self._news_of_progress(progress_out(progress_of(self._core, record)))],
            record.session.state in FINAL,
        )

    def _news_of_progress(self, progress: Out | None) -> list[bytes]:
        told, self._progress = self._progress, "" if progress is None else progress.model_dump_json()
        return [event("progress", self._progress)] if self._progress not in ("", told) else []


@router.get(
    "/v1/sessions/{session}/events",
    response_class=Response,
    responses=streamed(_OF_SESSION) | refusing(Reason.NOT_FOUND, Reason.LIMIT_REACHED),
)
async def get_session_events(
    request: Request,
    core: TheCore,
    actor: TheActor,
    session: Name,
    last_event_id: Annotated[
        int, Header(alias="Last-Event-ID", ge=0, le=2**31 - 1, description="The last id that was received.")
    ] = 0,
) -> Response:
    """Follow one Session: which states it came to, and why. The stream ends with it."""
    view = SessionView(core, SessionId(session), project_of(actor), last_event_id)
    return Live(core, request.app.state.threads, view)


@router.get("/core/v1/events", response_class=Response, responses=streamed(_OF_ALL) | refusing(Reason.LIMIT_REACHED))
async def get_events(request: Request, core: TheCore, last_event_id: LastEventId = None) -> Response:
    """Follow the installation: Sessions until they end, nodes (without `last_seen`) and images."""
    return Live(core, request.app.state.threads, Snapshots(lambda: _everything(core), last_event_id))


def snapshot(name: str, key: str, shown: Out, *leave_out: str) -> Snapshot:
    """One thing as its resource shows it."""
    return Snapshot(name, key, shown.model_dump_json(exclude=set(leave_out)))


def _everything(core: Core) -> Sequence[Snapshot]:
    default = current_deployment(core).default_image
    seen = [snapshot("image", entry.image.id, image_out(entry, default)) for entry in list_images(core)]
    # Each heartbeat moves `last_seen`, and says nothing that `online` does not.
    seen += [snapshot("node", node.id, node, "last_seen") for node in map(node_out, list_nodes(core))]
    # The node would have to be asked for what is left out of a Session.
    sessions = (admin_session_out(it, progress_of(core, it), None) for it in live_sessions(core.store))
    seen += [snapshot("session", it.id, it, "runtime", "host_pid") for it in sessions]
    return seen
