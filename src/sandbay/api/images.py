"""`sandbox/images`: the catalog's entries, and what nodes hold of them; `/v1/images`: what a project may use."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from sandbay.api.calls import Name, TheActor, TheCore, ThePage
from sandbay.api.documented import Answers, refusing
from sandbay.api.following import Following
from sandbay.api.live import MEDIA_TYPE, Live, streamed
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.images import (
    EvictionOut,
    ImageChange,
    ImageIn,
    ImageList,
    ImageOut,
    NodesIn,
    UsableList,
    image_out,
    usable_out,
)
from sandbay.api.wire.releases import ReadinessList, eviction_out, readiness_out
from sandbay.api.wire.verification import LookedOut, VerificationOut, looked_out, verification_out
from sandbay.app.core import Core
from sandbay.app.holdings import evict, holdings, preload
from sandbay.app.images import change_image, create_image, find_image, list_images
from sandbay.app.offers import offers, release_named
from sandbay.app.select import current_deployment
from sandbay.app.verify import Looked, verify
from sandbay.domain.ids import ImageId
from sandbay.domain.reasons import Reason
from sandbay.ports.records import FIRST_PAGE, Page

router = APIRouter(prefix="/core/v1/sandbox/images", route_class=StrictRoute, tags=["images"])
project_router = APIRouter(prefix="/v1/images", route_class=StrictRoute, tags=["images"])

_NAMED = (Reason.INVALID_REFERENCE, Reason.IMAGE_UNKNOWN, Reason.CHANNEL_UNKNOWN, Reason.RELEASE_UNKNOWN)
_EVERYTHING = NodesIn()
_EVENTS = (
    "Event `progress`: `{bytes_done, bytes_total}`. The last event is `verified`, what was seen, or `refused`, the"
    " envelope that would have been the answer."
)
_VERIFIED: Answers = {
    200: {
        "model": VerificationOut,
        "description": f"What was seen; or, with `Accept: {MEDIA_TYPE}`, events. {_EVENTS}",
        "content": streamed(_EVENTS)[200]["content"],
    }
}


def _default(core: Core) -> ImageId | None:
    return current_deployment(core).default_image


@router.get("", responses=refusing())
def get_images(core: TheCore, asked: ThePage) -> ImageList:
    """List the catalog by name."""
    default = _default(core)
    shown, following = page(list_images(core), asked, lambda entry: entry.image.name)
    return ImageList(items=[image_out(entry, default) for entry in shown], next=following)


@router.post("", status_code=201, responses=refusing(Reason.NAME_TAKEN, Reason.LIMIT_REACHED))
def post_image(core: TheCore, actor: TheActor, body: ImageIn) -> ImageOut:
    """Make an entry without releases."""
    entry = create_image(core, actor, body.name, body.description, body.labels)
    return image_out(entry, _default(core))


@router.get("/{image}", responses=refusing(Reason.IMAGE_UNKNOWN))
def get_image(core: TheCore, image: Name) -> ImageOut:
    """Show an entry."""
    return image_out(find_image(core, image), _default(core))


@router.patch("/{image}", responses=refusing(Reason.IMAGE_UNKNOWN, Reason.REVISION_STALE, Reason.IN_USE))
def patch_image(core: TheCore, actor: TheActor, image: Name, body: ImageChange) -> ImageOut:
    """Change what is given."""
    entry = change_image(
        core,
        actor,
        image,
        expected_revision=body.expected_revision,
        description=body.description,
        labels=body.labels,
        state=body.state,
        tier=body.tier,
    )
    return image_out(entry, _default(core))


def _readiness(core: Core, image: str, asked: Page) -> ReadinessList:
    entry = find_image(core, image)
    held = holdings(core, entry)
    shown, following = page(held, asked, lambda it: f"{it.number:09d}/{it.node.name}/{it.key}")
    return ReadinessList(items=[readiness_out(entry, holding) for holding in shown], next=following)


@router.get("/{image}/readiness", responses=refusing(Reason.IMAGE_UNKNOWN))
def get_readiness(core: TheCore, image: Name, asked: ThePage) -> ReadinessList:
    """Tell what each node says of each variant."""
    return _readiness(core, image, asked)


@router.post("/{image}/preload", status_code=202, responses=refusing(*_NAMED, Reason.NOT_FOUND))
def post_preload(core: TheCore, actor: TheActor, image: Name, body: NodesIn = _EVERYTHING) -> ReadinessList:
    """Wish that nodes hold a release, `stable` when none is named. They fetch it in their own time.

    Where it has failed it is tried again at once, also when the fault was one of content.
    """
    number = release_named(find_image(core, image), body.reference)
    preload(core, actor, image, number, body.node)
    return _readiness(core, image, FIRST_PAGE)


@router.post("/{image}/evict", responses=refusing(*_NAMED, Reason.NOT_FOUND))
def post_evict(core: TheCore, actor: TheActor, image: Name, body: NodesIn = _EVERYTHING) -> EvictionOut:
    """Have nodes drop a release, or all of the image, as far as nothing needs it."""
    number = release_named(find_image(core, image), body.reference)
    return eviction_out(list(evict(core, actor, image, number, body.node)))


@router.post(
    "/{image}/verify", response_model=VerificationOut, responses=_VERIFIED | refusing(*_NAMED, Reason.NOT_FOUND)
)
def post_verify(
    request: Request,
    core: TheCore,
    actor: TheActor,
    image: Name,
    body: NodesIn = _EVERYTHING,
    accept: Annotated[str, Header(max_length=1024, description=f"`{MEDIA_TYPE}` to follow it.")] = "application/json",
) -> VerificationOut | Response:
    """Look at every byte again: the blobs in the installation's store, and what the nodes that are ready made of them.

    What a node finds damaged is `failed(content_lost)` there, and is fetched again; sandboxes that run go on. What
    failed on a blob that is whole now is tried again. Without a reference all releases are looked at.
    """
    number = release_named(find_image(core, image), body.reference)

    def verified(tell: Callable[[LookedOut], None]) -> VerificationOut:
        def hear(looked: Looked) -> None:
            tell(looked_out(looked))

        return verification_out(find_image(core, image), verify(core, actor, image, number, body.node, hear))

    if MEDIA_TYPE in accept:
        view = Following[LookedOut](request, core, verified, "verified")
        return Live(core, request.app.state.threads, view, resumable=False)
    return verified(lambda _: None)


@project_router.get("", responses=refusing())
def get_usable_images(core: TheCore, asked: ThePage) -> UsableList:
    """List what this project may use, by name."""
    deployment = current_deployment(core)
    default, platform = deployment.default_image, deployment.default_platform
    shown, following = page(offers(core), asked, lambda offer: offer.entry.image.name)
    return UsableList(items=[usable_out(it.entry, it.platforms, default, platform) for it in shown], next=following)
