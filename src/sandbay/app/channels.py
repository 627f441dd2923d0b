"""Channels: where they point, where they have pointed, and who moves them. Existing Sessions keep their releases."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.app import audit
from sandbay.app.access import revision_stale
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_channel, find_image, find_release
from sandbay.app.losses import losses, refusal_for, told
from sandbay.app.select import current_deployment
from sandbay.domain.catalog import Channel, ChannelMove, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.deployment import Pool
from sandbay.domain.errors import Facts, RefusedError
from sandbay.domain.impact import ChannelMoved
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import is_channel_name
from sandbay.domain.release import NOT_RUNNABLE, ReleaseState, Variant
from sandbay.ports.changes import Conflict, MoveChannel
from sandbay.ports.channels import ChannelMoves, PreviousRelease


@dataclass(frozen=True)
class Move:
    """Where a channel should point.

    expected_revision: refuse if it has another one by now; 0: if it exists.
    force: move although somebody who has an image now would have none then.
    """

    channel: str
    number: int
    expected_revision: int | None = None
    why: str = ""
    force: bool = False


@dataclass(frozen=True)
class ChannelView:
    """Where a channel points, and the number of the release that it pointed at before."""

    entry: ImageEntry
    channel: Channel
    previous: int | None


def view_channel(core: Core, name_or_id: str, channel: str) -> ChannelView:
    """As it is now."""
    entry = find_image(core, name_or_id)
    return ChannelView(entry, find_channel(entry, channel), core.store.read(PreviousRelease(entry.image.id, channel)))


def channel_moves(core: Core, name_or_id: str, channel: str, limit: int, before: int | None) -> Sequence[ChannelMove]:
    """Its history, newest first: moves older than the revision `before` when given."""
    entry = find_image(core, name_or_id)
    find_channel(entry, channel)
    return core.store.read(ChannelMoves(entry.image.id, channel, limit, before))


def promote(core: Core, actor: Actor, name_or_id: str, move: Move) -> ChannelView:
    """Point a channel at an active release."""
    check_name(move.channel)
    _move(core, actor, "channel.promote", find_image(core, name_or_id), move)
    return view_channel(core, name_or_id, move.channel)


def roll_back(
    core: Core,
    actor: Actor,
    name_or_id: str,
    channel: str,
    *,
    expected_revision: int | None = None,
    why: str = "",
    force: bool = False,
) -> ChannelView:
    """Point a channel at the release before: one write, refused when anybody moves the channel meanwhile."""
    view = view_channel(core, name_or_id, channel)
    name = view.entry.image.name
    if view.previous is None:
        message = f"{name}:{channel} has pointed at no release but {name}:{view.channel.number}"
        raise RefusedError(Reason.RELEASE_UNKNOWN, message, details={"release": view.channel.number})
    revision = view.channel.revision if expected_revision is None else expected_revision
    _move(core, actor, "channel.rollback", view.entry, Move(channel, view.previous, revision, why, force))
    return view_channel(core, name_or_id, channel)


def _move(core: Core, actor: Actor, action: str, entry: ImageEntry, to: Move) -> None:
    check_target(core, entry, find_release(entry, to.number))
    forced = check_losses(core, entry, to)
    pointer = entry.channels.get(to.channel)
    facts: dict[str, object] = {
        "channel": to.channel,
        "from": pointer.number if pointer else None,
        "to": to.number,
        "why": to.why,
    }
    facts |= {"forced": forced} if forced else {}
    move = MoveChannel(
        entry.image.id, to.channel, to.number, to.expected_revision, core.clock.now(), actor.principal, to.why
    )
    try:
        core.store.apply(move, audit.done(core, actor, action, entry.image.id, facts))
    except Conflict as conflict:
        now = find_image(core, entry.image.id)
        check_target(core, now, find_release(now, to.number))  # the channel is not to blame for what the release is
        raise revision_stale(conflict) from conflict
    core.changed.set()


def check_name(channel: str) -> None:
    """Refuse what is no channel's name."""
    if not is_channel_name(channel):
        message = "a channel name is a letter, then letters, digits, '.', '_', '-', at most 63"
        raise RefusedError(Reason.INVALID_BODY, message, param="channel")


def check_target(core: Core, entry: ImageEntry, held: ReleaseEntry) -> None:
    """Refuse what no channel may point at: only what is active, and what some pool can run where there are pools."""
    if entry.image.state is ImageState.RETIRED:
        raise RefusedError(Reason.IMAGE_RETIRED, f"{entry.image.name} is retired")
    state, name = held.status.state, f"{entry.image.name}:{held.release.number}"
    if state in NOT_RUNNABLE:
        reason, what = NOT_RUNNABLE[state]
        raise RefusedError(reason, f"{name} {what}", param="release")
    if state is not ReleaseState.ACTIVE:
        message = f"{name} is {state.value} and no channel may point at it; reactivate it first"
        raise RefusedError(Reason.INVALID_BODY, message, param="release", details={"state": state.value})
    pools = current_deployment(core).pools
    if pools and not any(_runs(pool, variant) for pool in pools for variant in held.release.variants):
        platforms = sorted(str(variant.platform) for variant in held.release.variants)
        message = f"no pool of the deployment can run {name}"
        raise RefusedError(Reason.IMAGE_UNSUPPORTED, message, param="release", details={"platforms": platforms})


def check_losses(core: Core, entry: ImageEntry, to: Move) -> Sequence[Facts]:
    """Refuse a move after which somebody would have no image, with who would lose what; forced, only tell it."""
    move = ChannelMoved(entry.image.id, to.channel, to.number)
    lost = losses(core, move)
    if lost and not to.force:
        raise RefusedError.of(refusal_for(entry.image.name, move, lost))
    return [told(it) for it in lost]


def _runs(pool: Pool, variant: Variant) -> bool:
    return pool.platform == variant.platform and pool.provider in variant.providers
