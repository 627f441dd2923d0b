"""Promotions that wait for nodes."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import Failure, In, Listing, Out, Revision, Words, failure_of
from sandbay.api.wire.channels import FORCE, ReleaseNumber
from sandbay.app.promotions import PromotionState
from sandbay.domain.node import NodeView
from sandbay.domain.promotion import PromotionOutcome
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.reference import STABLE

DAY = 24 * 60 * 60


class PromotionIn(In):
    """A channel that moves when enough nodes are ready."""

    release: ReleaseNumber = Field(description="The release's number.")
    channel: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        default=STABLE, description="The channel to move."
    )
    nodes: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="On how many nodes it has to be ready; when omitted, on every one that can run it."
    )
    deadline_seconds: Annotated[int, Field(ge=1, le=7 * DAY)] = Field(
        default=3600, description="How long it may take; then it has failed and the channel stays."
    )
    expected_revision: Revision | None = Field(
        default=None, description="Refuse if the channel has another one by now; 0: if it exists."
    )
    why: Words = Field(default="", description="Kept in the channel's history.")
    force: bool = Field(default=False, description=FORCE)


class PromotionNodeOut(Out):
    """A node that can run the release."""

    node: str = Field(description="The node's name.")
    online: bool = Field(description="Whether it has been heard from lately; only then it counts.")
    state: ReadinessState = Field(description="What it says of the release.")
    bytes_done: int = Field(description="Bytes fetched.")
    bytes_total: int = Field(description="Bytes to fetch.")
    failure: Failure | None = Field(description="Why it failed there, if it did.")


class PromotionProgress(Out):
    """How far a promotion is."""

    ready: int = Field(description="On how many nodes the release is ready.")
    needed: int = Field(description="On how many it has to be.")
    nodes: list[PromotionNodeOut] = Field(description="Those that can run it, by name.")


class PromotionOut(Out):
    """A promotion that waits, or has an outcome."""

    id: str = Field(description="Its id.")
    image: str = Field(description="The image's name.")
    channel: str = Field(description="The channel to move.")
    release: int = Field(description="The release's number.")
    before: int | None = Field(description="Where the channel pointed when it began; null when it is new.")
    nodes: int | None = Field(description="On how many nodes it has to be ready; null: on every one that can run it.")
    deadline: datetime = Field(description="When it fails if it still waits.")
    created_at: datetime = Field(description="When it began.")
    principal: str = Field(description="Who began it.")
    why: str = Field(description="Why, as it was said then.")
    force: bool = Field(description="Whether it moves although somebody loses by it.")
    outcome: PromotionOutcome | None = Field(description="How it ended; null while it waits.")
    failure: Failure | None = Field(description="Why it failed, if it did.")
    ended_at: datetime | None = Field(description="When it ended.")
    ended_by: str | None = Field(description="Who ended it; `system` when it came to its outcome by itself.")
    progress: PromotionProgress | None = Field(description="How far it is; null when it has ended.")


class PromotionList(Listing[PromotionOut]):
    """Newest first."""


def _node_out(view: NodeView) -> PromotionNodeOut:
    at = view.readiness
    return PromotionNodeOut(
        node=view.node.name,
        online=view.online,
        state=at.state,
        bytes_done=at.bytes_done,
        bytes_total=at.bytes_total,
        failure=failure_of(at.fault),
    )


def promotion_out(state: PromotionState) -> PromotionOut:
    """From the domain."""
    it, waits = state.promotion, state.waits
    nodes = [_node_out(view) for view in state.nodes]
    return PromotionOut(
        id=it.id,
        image=state.entry.image.name,
        channel=it.channel,
        release=it.number,
        before=it.before,
        nodes=it.nodes,
        deadline=it.deadline,
        created_at=it.created_at,
        principal=it.principal,
        why=it.why,
        force=it.force,
        outcome=it.outcome,
        failure=failure_of(it.fault),
        ended_at=it.ended_at,
        ended_by=it.ended_by,
        progress=None if waits is None else PromotionProgress(ready=waits.ready, needed=waits.needed, nodes=nodes),
    )
