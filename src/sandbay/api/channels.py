"""`sandbox/images/{image}/channels`: named pointers to releases."""

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.images import ChannelIn, ChannelOut, channel_out
from sandbay.app.images import find_channel, find_image, promote
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/images/{image}/channels", route_class=StrictRoute, tags=["images"])

_NOT_ACTIVE = (Reason.IMAGE_RETIRED, Reason.RELEASE_PENDING, Reason.RELEASE_REJECTED, Reason.RELEASE_RETIRED)


@router.get("/{channel}", responses=refusing(Reason.IMAGE_UNKNOWN, Reason.CHANNEL_UNKNOWN))
def get_channel(core: TheCore, image: Name, channel: Name) -> ChannelOut:
    """Show where a channel points."""
    entry = find_image(core, image)
    return channel_out(entry, find_channel(entry, channel))


@router.put(
    "/{channel}",
    responses=refusing(Reason.IMAGE_UNKNOWN, Reason.RELEASE_UNKNOWN, Reason.REVISION_STALE, *_NOT_ACTIVE),
)
def put_channel(core: TheCore, actor: TheActor, image: Name, channel: Name, body: ChannelIn) -> ChannelOut:
    """Promote: point a channel at an active release. Sessions that live keep theirs."""
    entry = promote(core, actor, image, channel, body.release, body.expected_revision, body.why)
    return channel_out(entry, find_channel(entry, channel))
