"""Channels: where they point and have pointed."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import In, Listing, Out, Revision, Words
from sandbay.api.wire.images import PointerOut
from sandbay.app.channels import ChannelView
from sandbay.domain.catalog import ChannelMove

FORCE = "Move although somebody who has an image now would have none then: a Template whose tools are missing, say."

ReleaseNumber = Annotated[int, Field(ge=1, le=999_999_999)]


class ChannelIn(In):
    """Where a channel should point."""

    release: ReleaseNumber = Field(description="The release's number.")
    expected_revision: Revision | None = Field(
        default=None, description="Refuse if the channel has another one by now; 0: if it exists."
    )
    why: Words = Field(default="", description="Kept in the channel's history.")
    force: bool = Field(default=False, description=FORCE)


class RollbackIn(In):
    """Back to the release before."""

    expected_revision: Revision | None = Field(
        default=None, description="Refuse if the channel has another one by now; else if it moves meanwhile."
    )
    why: Words = Field(default="", description="Kept in the channel's history.")
    force: bool = Field(default=False, description=FORCE)


class ChannelOut(PointerOut):
    """A channel."""

    image: str = Field(description="The image's name.")
    name: str = Field(description="The channel's name.")
    previous: int | None = Field(description="The release that it pointed at before, to which a rollback leads.")


class ChannelMoveOut(Out):
    """One move of a channel."""

    revision: int = Field(description="The channel's revision by this move.")
    before: int | None = Field(description="The release that it pointed at; null for the first.")
    release: int = Field(description="The release that it has pointed at since.")
    at: datetime = Field(description="When.")
    principal: str = Field(description="Who.")
    why: str = Field(description="Why, as it was said then.")


class ChannelMoveList(Listing[ChannelMoveOut]):
    """Newest first."""


def channel_out(view: ChannelView) -> ChannelOut:
    """From the domain."""
    at = view.channel
    return ChannelOut(
        image=view.entry.image.name, name=at.name, release=at.number, revision=at.revision, previous=view.previous
    )


def channel_move_out(move: ChannelMove) -> ChannelMoveOut:
    """From the domain."""
    return ChannelMoveOut(
        revision=move.revision,
        before=move.before,
        release=move.number,
        at=move.at,
        principal=move.principal,
        why=move.why,
    )
