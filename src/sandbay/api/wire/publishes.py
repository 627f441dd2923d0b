"""Publishes: what is asked, how far it is, and what a publish would do."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from sandbay.api.wire.base import NO_NUL, Failure, In, Line, Listing, Out, failure_of
from sandbay.app.publish import Plan
from sandbay.domain.ids import UploadId
from sandbay.domain.publish import Base, Publish, PublishOrder, PublishPhase


class PublishIn(In):
    """What to publish: an uploaded folder with an image.toml, or one with a plain Dockerfile and a name."""

    upload: Line = Field(description="The id of an upload: a tar of the folder, plain.")
    name: Line | None = Field(default=None, description="What the image is called; only with `dockerfile`.")
    dockerfile: Annotated[str, Field(min_length=1, max_length=1024, pattern=NO_NUL)] | None = Field(
        default=None, description="The path of a plain Dockerfile in the folder; only with `name`."
    )
    promote: Line | None = Field(default=None, description="The channel to move to the release once it is proved.")
    source_commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = Field(
        default=None, description="The commit of the folder, when it is clean under version control."
    )
    rebuild: bool = Field(default=False, description="Build although nothing changed: packages may have.")

    def order(self) -> PublishOrder:
        """As the use case takes it."""
        return PublishOrder(
            UploadId(self.upload), self.name, self.dockerfile, self.promote, self.source_commit, self.rebuild
        )


class BaseOut(Out):
    """What a FROM means."""

    text: str = Field(description="As it is written.")
    release: str | None = Field(description="The catalog's release, as NAME:NUMBER.")
    digest: str | None = Field(description="The image's digest; null until its registry is asked.")
    layers: int = Field(description="How many layers of it come below.")


class PublishOut(Out):
    """One publish."""

    id: str = Field(description="Its id.")
    image: str = Field(description="The image's name.")
    phase: PublishPhase = Field(description="done, failed and cancelled are final.")
    created_at: datetime = Field(description="When it was asked for.")
    ended_at: datetime | None = Field(description="When it came to its end.")
    principal: str = Field(description="Who asked for it.")
    attempt: int = Field(description="How many times it was begun.")
    promote: str | None = Field(description="The channel that it moves in the end.")
    source_commit: str | None = Field(description="The commit of the folder.")
    inputs: str | None = Field(description="A digest over everything that goes into the build.")
    bases: list[BaseOut] = Field(description="What it was built on.")
    release: str | None = Field(description="The release that it came to, as NAME:NUMBER.")
    built: bool | None = Field(description="False when these inputs had given the release before.")
    cancelling: bool = Field(description="Whether somebody wants its end.")
    fault: Failure | None = Field(description="Why it failed or was cancelled.")


class PublishList(Listing[PublishOut]):
    """Publishes, newest first."""


class SharedLayerOut(Out):
    """A layer that is there already."""

    digest: str = Field(description="Of the blob.")
    size: int = Field(description="Bytes.")


class PlanOut(Out):
    """What publishing this would do now."""

    image: str = Field(description="The image's name.")
    action: Literal["build", "reuse", "unknown"] = Field(
        description="unknown: that shows only when a registry is asked for a base."
    )
    why: str = Field(description="For people.")
    release: str | None = Field(description="The release that would be answered.")
    bases: list[BaseOut] = Field(description="What it would be built on.")
    shared_layers: list[SharedLayerOut] = Field(description="The base's layers, which the image would share.")
    dockerfile: str = Field(description="The file whose instructions would be run.")
    steps: list[str] = Field(description="Those instructions.")
    files: int = Field(description="Files, folders and links in the context.")
    tools: dict[str, str] = Field(description="Commands that would be run in the image to check it.")


def _base(base: Base) -> BaseOut:
    return BaseOut(text=base.text, release=base.release, digest=base.digest or None, layers=base.layers)


def publish_out(publish: Publish, release: str | None) -> PublishOut:
    """From the domain; `release` as NAME:NUMBER."""
    return PublishOut(
        id=publish.id,
        image=publish.image,
        phase=publish.phase,
        created_at=publish.created_at,
        ended_at=publish.ended_at,
        principal=publish.principal,
        attempt=publish.attempt,
        promote=publish.order.promote,
        source_commit=publish.order.source_commit,
        inputs=publish.inputs.digest if publish.inputs else None,
        bases=[_base(base) for base in publish.inputs.bases] if publish.inputs else [],
        release=release,
        built=publish.built,
        cancelling=publish.cancelled_by is not None,
        fault=failure_of(publish.fault),
    )


def plan_out(plan: Plan) -> PlanOut:
    """From the use case."""
    decided = plan.rebuild
    action: Literal["build", "reuse", "unknown"] = "build"
    if decided is None:
        action = "unknown"
    elif decided.release is not None:
        action = "reuse"
    return PlanOut(
        image=plan.prepared.recipe.name,
        action=action,
        why=decided.why if decided else "a base is looked up in its registry when it is built",
        release=plan.release,
        bases=[_base(base) for base in plan.bases],
        shared_layers=[SharedLayerOut(digest=it.digest, size=it.size) for it in plan.shared],
        dockerfile=plan.prepared.dockerfile,
        steps=list(plan.prepared.containerfile.steps),
        files=plan.prepared.count,
        tools=dict(plan.prepared.recipe.tools),
    )
