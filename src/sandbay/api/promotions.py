"""`sandbox/images/{image}/promotions`: channels that move when enough nodes are ready."""

from dataclasses import replace
from datetime import timedelta

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore, ThePage
from sandbay.api.channels import NOT_A_TARGET
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.promotions import PromotionIn, PromotionList, PromotionOut, promotion_out
from sandbay.app import promotions
from sandbay.app.channels import Move
from sandbay.app.promotions import Gate
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/images/{image}/promotions", route_class=StrictRoute, tags=["images"])

_FOUND = (Reason.IMAGE_UNKNOWN, Reason.NOT_FOUND)


@router.post(
    "",
    status_code=201,
    responses=refusing(
        Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN, Reason.REVISION_STALE, Reason.IN_USE, *NOT_A_TARGET
    ),
)
def post_promotion(core: TheCore, actor: TheActor, image: Name, body: PromotionIn) -> PromotionOut:
    """Promote as soon as enough nodes are ready, so that the switch opens no gap. Sessions that live keep theirs.

    Until then nodes fetch the release as a required one, and the channel stays where it is.
    """
    move = Move(body.channel, body.release, body.expected_revision, body.why, body.force)
    gate = Gate(body.nodes, timedelta(seconds=body.deadline_seconds))
    return promotion_out(promotions.begin(core, actor, image, move, gate))


@router.get("", responses=refusing(Reason.IMAGE_UNKNOWN))
def get_promotions(core: TheCore, image: Name, asked: ThePage) -> PromotionList:
    """List the promotions of an image, newest first."""
    found = promotions.list_promotions(core, image, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, lambda it: it.promotion.id)
    return PromotionList(items=[promotion_out(it) for it in shown], next=following)


@router.get("/{promotion}", responses=refusing(*_FOUND))
def get_promotion(core: TheCore, image: Name, promotion: Name) -> PromotionOut:
    """Show a promotion, with what each node says of the release while it waits."""
    return promotion_out(promotions.find_promotion(core, image, promotion))


@router.post("/{promotion}/abort", responses=refusing(*_FOUND, Reason.ALREADY_ENDED))
def post_promotion_abort(core: TheCore, actor: TheActor, image: Name, promotion: Name) -> PromotionOut:
    """End a promotion that waits. The channel stays where it is."""
    return promotion_out(promotions.abort(core, actor, image, promotion))
