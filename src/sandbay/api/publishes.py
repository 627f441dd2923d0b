"""`sandbox/publishes`: making releases of folders."""

import json
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from sandbay.api.calls import Name, TheActor, TheCore, ThePage
from sandbay.api.documented import also, refusing
from sandbay.api.live import Live, News, event, streamed
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.publishes import PlanOut, PublishIn, PublishList, PublishOut, plan_out, publish_out
from sandbay.app import publish as publishes
from sandbay.app.core import Core
from sandbay.domain.publish import FINISHED, Publish
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/publishes", route_class=StrictRoute, tags=["images"])

_LOOK_BYTES = 64 * 1024
_CHECKING = (
    *(Reason.NOT_FOUND, Reason.MALFORMED_ARCHIVE, Reason.UNSAFE_LINK, Reason.LIMIT_EXCEEDED, Reason.IMAGE_RETIRED),
    *(Reason.INVALID_REFERENCE, Reason.IMAGE_UNKNOWN, Reason.CHANNEL_UNKNOWN, Reason.RELEASE_UNKNOWN),
    *(Reason.RELEASE_RETIRED, Reason.RELEASE_PENDING, Reason.RELEASE_REJECTED, Reason.NO_DEFAULT_IMAGE),
    *(Reason.IMAGE_UNSUPPORTED, Reason.RELEASE_INCOMPLETE),
)
_IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="A repeated request with this key answers with the publish that the first one began.",
    ),
]
_LOG = (
    "Event `log`, whose id is where the next one begins: `{text}`. Event `publish`: the publish, whenever it has moved."
)


def _shown(core: Core, publish: Publish) -> PublishOut:
    return publish_out(publish, publishes.release_of(core, publish))


@router.post(
    "",
    status_code=201,
    responses=also(200, PublishOut, "The publish that this `Idempotency-Key` began.")
    | refusing(*_CHECKING, Reason.IDEMPOTENCY_CONFLICT),
)
def post_publish(
    core: TheCore, actor: TheActor, body: PublishIn, response: Response, idempotency_key: _IdempotencyKey = None
) -> PublishOut:
    """Build an uploaded folder, register it, have it checked and, when asked, promoted.

    It is queued here and goes on by itself: look at it, or follow its log. What was built from the same inputs before
    is not built again.
    """
    begun = publishes.start(core, actor, body.order(), idempotency_key)
    if not begun.created:
        response.status_code = 200
    return _shown(core, begun.publish)


@router.post("/plan", responses=refusing(*_CHECKING))
def post_publish_plan(core: TheCore, body: PublishIn) -> PlanOut:
    """Tell what publishing this would do now. Nothing is built, fetched or written."""
    return plan_out(publishes.plan(core, body.order()))


@router.get("", responses=refusing())
def get_publishes(
    core: TheCore,
    asked: ThePage,
    image: Annotated[str | None, Query(max_length=63, description="Only of this image.")] = None,
) -> PublishList:
    """List publishes, newest first."""
    found = publishes.list_publishes(core, image, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, lambda publish: publish.id)
    return PublishList(items=[_shown(core, it) for it in shown], next=following)


@router.get("/{publish}", responses=refusing(Reason.NOT_FOUND))
def get_publish(core: TheCore, publish: Name) -> PublishOut:
    """Show a publish."""
    return _shown(core, publishes.find(core, publish))


@router.post(
    "/{publish}/cancel",
    status_code=202,
    responses=refusing(Reason.NOT_FOUND, Reason.ALREADY_ENDED, Reason.REVISION_STALE),
)
def post_publish_cancel(core: TheCore, actor: TheActor, publish: Name) -> PublishOut:
    """End a publish as soon as its build has stopped. A release that it has registered stays."""
    return _shown(core, publishes.cancel(core, actor, publish))


class LogView:
    """What a build says, as it says it; and how its publish moves."""

    def __init__(self, core: Core, publish: str, offset: int) -> None:
        """`offset` is how many bytes of the log the reader has."""
        self._core, self._publish, self._offset = core, publish, offset
        self._told = ""

    def news(self) -> News:
        """Refuses with `not_found`."""
        # The publish first: what is said after that is told at the next look, and is never the last then.
        publish = publishes.find(self._core, self._publish)
        text = _whole(publishes.read_log(self._core, publish.id, self._offset, _LOOK_BYTES))
        self._offset += len(text)
        said = json.dumps({"text": text.decode(errors="replace")})
        news = [event("log", said, str(self._offset))] if text else []
        now = _shown(self._core, publish).model_dump_json()
        if now != self._told and not text:
            news.append(event("publish", now))
            self._told = now
        return News(news, publish.phase in FINISHED and not text)


def _whole(data: bytes) -> bytes:
    """Without the beginning of a character whose rest is still to come."""
    for cut in range(4):
        head = data[: len(data) - cut]
        try:
            head.decode()
        except UnicodeDecodeError:
            continue
        return head
    return data


@router.get(
    "/{publish}/log",
    response_class=Response,
    responses=streamed(_LOG) | refusing(Reason.NOT_FOUND, Reason.LIMIT_REACHED),
)
async def get_publish_log(
    request: Request,
    core: TheCore,
    publish: Name,
    last_event_id: Annotated[
        int, Header(alias="Last-Event-ID", ge=0, le=2**31 - 1, description="The last id that was received.")
    ] = 0,
) -> Response:
    """Follow a publish: what its build says, and each phase that it comes to. The stream ends with it."""
    return Live(core, request.app.state.threads, LogView(core, publish, last_event_id))
