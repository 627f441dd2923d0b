"""`sandbox/images/{image}/releases`: immutable releases."""

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from sandbay.api.calls import Name, Number, TheActor, TheCore, ThePage
from sandbay.api.documented import Answers, refusing
from sandbay.api.following import Following
from sandbay.api.live import MEDIA_TYPE, Live, streamed
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.contracts import ReportList, node_report_out
from sandbay.api.wire.releases import (
    CopiedOut,
    ReleaseChange,
    ReleaseIn,
    ReleaseList,
    ReleaseOut,
    copied_out,
    release_out,
)
from sandbay.app.contracts import check_release, reports_of, trouble_of
from sandbay.app.core import Core
from sandbay.app.images import change_release, find_image, find_release
from sandbay.app.register import register
from sandbay.domain.catalog import ImageEntry, ReleaseEntry
from sandbay.domain.reasons import Group, Reason
from sandbay.ports.image_source import Progress

router = APIRouter(prefix="/core/v1/sandbox/images/{image}/releases", route_class=StrictRoute, tags=["images"])

_READING = tuple(reason for reason in Reason if reason.about.group in (Group.CONTENT, Group.TRANSFER))
_REGISTERING = (
    *(Reason.IMAGE_UNKNOWN, Reason.NOT_FOUND, Reason.PROVIDER_UNKNOWN, Reason.IMAGE_RETIRED),
    *(
        Reason.RELEASE_INCOMPLETE,
        Reason.NOT_ONE_DISTRIBUTION,
        Reason.LIMIT_REACHED,
        Reason.REVISION_STALE,
        Reason.NO_SPACE,
    ),
    *(Reason.INVALID_REFERENCE, Reason.HOST_UNFIT),
    *_READING,
)
_EVENTS = (
    "Event `progress`: `{bytes_done, bytes_total, layers}`, what is copied into the installation's store. The last"
    " event is `release`, the release's resource, or `refused`, the envelope that would have been the answer. What is"
    " refused before anything is copied is refused as without events."
)
_THERE_OR_EVENTS: Answers = {
    200: {
        "model": ReleaseOut,
        "description": f"The same content was there; or, with `Accept: {MEDIA_TYPE}`, events. {_EVENTS}",
        "content": streamed(_EVENTS)[200]["content"],
    }
}


def _shown(core: Core, entry: ImageEntry, held: ReleaseEntry) -> ReleaseOut:
    return release_out(entry, held, trouble_of(core, held))


@router.get("", responses=refusing(Reason.IMAGE_UNKNOWN))
def get_releases(core: TheCore, image: Name, asked: ThePage) -> ReleaseList:
    """List an image's releases by number."""
    entry = find_image(core, image)
    shown, following = page(list(entry.releases.values()), asked, lambda held: f"{held.release.number:09d}")
    return ReleaseList(items=[_shown(core, entry, held) for held in shown], next=following)


@router.post(
    "",
    status_code=201,
    response_model=ReleaseOut,
    responses=_THERE_OR_EVENTS | refusing(*_REGISTERING),
)
def post_release(
    request: Request,
    core: TheCore,
    actor: TheActor,
    image: Name,
    body: ReleaseIn,
    response: Response,
    accept: Annotated[str, Header(max_length=1024, description=f"`{MEDIA_TYPE}` to follow it.")] = "application/json",
) -> ReleaseOut | Response:
    """Register an upload, or what a registry has, as a release. It is read, verified and copied.

    Identical content is the release there is.
    """
    asked = body.registration()

    def registered(progress: Progress) -> ReleaseOut:
        done = register(core, actor, image, asked, progress)
        if not done.created:
            response.status_code = 200
        return _shown(core, find_image(core, image), done.held)

    if MEDIA_TYPE in accept:
        view = Following[CopiedOut](request, core, lambda tell: registered(lambda it: tell(copied_out(it))), "release")
        return Live(core, request.app.state.threads, view, resumable=False)
    return registered(lambda _: None)


@router.get("/{number}", responses=refusing(Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN))
def get_release(core: TheCore, image: Name, number: Number) -> ReleaseOut:
    """Show a release."""
    entry = find_image(core, image)
    return _shown(core, entry, find_release(entry, number))


@router.patch(
    "/{number}",
    responses=refusing(Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN, Reason.IN_USE, Reason.REVISION_STALE),
)
def patch_release(core: TheCore, actor: TheActor, image: Name, number: Number, body: ReleaseChange) -> ReleaseOut:
    """Deprecate, retire or reactivate a release."""
    held = change_release(core, actor, image, number, body.state)
    return _shown(core, find_image(core, image), held)


@router.post(
    "/{number}/check",
    status_code=202,
    responses=refusing(Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN, Reason.RELEASE_REJECTED, Reason.REVISION_STALE),
)
def post_check(core: TheCore, actor: TheActor, image: Name, number: Number) -> ReleaseOut:
    """Have the tools looked at again, in a new sandbox. While a check is under way, that one answers.

    The newest report says which tools are verified. A release that is in use stays what it is, also when its contract
    is `violated`; one that was rejected for its contract is pending again until the report comes.
    """
    held = check_release(core, actor, image, number)
    return _shown(core, find_image(core, image), held)


@router.get("/{number}/reports", responses=refusing(Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN))
def get_reports(core: TheCore, image: Name, number: Number, asked: ThePage) -> ReportList:
    """List what every check of a release saw, newest first."""
    held = find_release(find_image(core, image), number)
    rows = reports_of(core, held)
    shown, following = page(rows, asked, lambda row: f"{999_999_999 - row.checked.number:09d}/{row.key}")
    return ReportList(items=[node_report_out(row, held) for row in shown], next=following)
