"""`sandbox/images/{image}/channels`: named pointers to releases."""

from typing import Annotated

from fastapi import APIRouter, Query

from sandbay.api.calls import Name, TheActor, TheCore
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.channels import (
    ChannelIn,
    ChannelMoveList,
    ChannelOut,
    RollbackIn,
    channel_move_out,
    channel_out,
)
from sandbay.app.channels import Move, channel_moves, promote, roll_back, view_channel
from sandbay.domain.reasons import Reason
from sandbay.ports.records import Page

router = APIRouter(prefix="/core/v1/sandbox/images/{image}/channels", route_class=StrictRoute, tags=["images"])

NOT_A_TARGET = (
    *(Reason.IMAGE_RETIRED, Reason.RELEASE_PENDING, Reason.RELEASE_REJECTED, Reason.RELEASE_RETIRED),
    *(Reason.IMAGE_UNSUPPORTED, Reason.REQUIREMENTS_UNMET, Reason.IMAGE_ENFORCED),
)
"""Why no channel may point at a release; the last ones also: who would have no image any more."""
_NAMED = (Reason.IMAGE_UNKNOWN, Reason.CHANNEL_UNKNOWN)
_BACK = RollbackIn()


@router.get("/{channel}", responses=refusing(*_NAMED))
def get_channel(core: TheCore, image: Name, channel: Name) -> ChannelOut:
    """Show where a channel points."""
    return channel_out(view_channel(core, image, channel))


@router.put(
    "/{channel}",
    responses=refusing(Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN, Reason.REVISION_STALE, *NOT_A_TARGET),
)
def put_channel(core: TheCore, actor: TheActor, image: Name, channel: Name, body: ChannelIn) -> ChannelOut:
    """Promote: point a channel at an active release. Sessions that live keep theirs."""
    move = Move(channel, body.release, body.expected_revision, body.why, body.force)
    return channel_out(promote(core, actor, image, move))


@router.get("/{channel}/history", responses=refusing(*_NAMED))
def get_channel_history(
    core: TheCore,
    image: Name,
    channel: Name,
    limit: Annotated[int, Query(ge=1, le=500, description="How many items at most.")] = 100,
    after: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="`next` of the last page.")] = None,
) -> ChannelMoveList:
    """List who pointed the channel where, newest first."""
    moves = channel_moves(core, image, channel, limit + 1, after)
    shown, following = page_of_more(moves, Page(limit=limit), lambda move: str(move.revision))
    return ChannelMoveList(items=[channel_move_out(move) for move in shown], next=following)


@router.post(
    "/{channel}/rollback",
    responses=refusing(*_NAMED, Reason.RELEASE_UNKNOWN, Reason.REVISION_STALE, *NOT_A_TARGET),
)
def post_channel_rollback(
    core: TheCore, actor: TheActor, image: Name, channel: Name, body: RollbackIn = _BACK
) -> ChannelOut:
    """Point the channel at the release before, in one write. Sessions that live keep theirs."""
    view = roll_back(
        core,
        actor,
        image,
        channel,
        expected_revision=body.expected_revision,
        why=body.why,
        force=body.force,
    )
    return channel_out(view)
