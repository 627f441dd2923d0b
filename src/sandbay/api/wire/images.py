"""Images; what a project may use."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import In, Labels, Line, Listing, Out, Revision, Slug, Words
from sandbay.api.wire.contracts import ToolVersions, versions_out
from sandbay.domain.catalog import Channel, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.ceiling import Tier
from sandbay.domain.ids import ImageId
from sandbay.domain.platform import Platform
from sandbay.domain.requirement import Tools


class ImageIn(In):
    """A new image."""

    name: Slug = Field(description="Lower-case letters, digits and -; never changes.")
    description: Words = Field(default="", description="For people.")
    labels: Labels = Field(default={}, description="For filters and selection.")


class ImageChange(In):
    """What to change; an omitted member keeps its value."""

    description: Words | None = Field(default=None, description="For people.")
    labels: Labels | None = Field(default=None, description="Replaces all labels.")
    state: Annotated[ImageState, Field(strict=False)] | None = Field(
        default=None, description="A retired image takes no new Sessions."
    )
    tier: Annotated[Tier, Field(strict=False)] | None = Field(
        default=None, description="A `restricted` image needs a grant to the project or to a scope of the path."
    )
    expected_revision: Revision | None = Field(default=None, description="Refuse if it has another one by now.")


class NodesIn(In):
    """Which release, on which node."""

    reference: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")] | None = Field(
        default=None, description="A release of this image, as NAME:7, NAME:CHANNEL, NAME@DIGEST or rel_…"
    )
    node: Line | None = Field(default=None, description="A node's name or id; every node when omitted.")


class PointerOut(Out):
    """Where a channel points."""

    release: int = Field(description="The release's number.")
    revision: int = Field(description="Rises with every move.")


class ImageOut(Out):
    """A named entry of the catalog."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    description: str = Field(description="For people.")
    labels: dict[str, str] = Field(description="For filters and selection.")
    state: ImageState = Field(description="A retired image takes no new Sessions.")
    tier: Tier = Field(description="A `restricted` image needs a grant.")
    revision: int = Field(description="Rises with every change.")
    created_at: datetime = Field(description="When it was made.")
    channels: dict[str, PointerOut] = Field(description="Channel → release.")
    releases: list[int] = Field(description="The numbers of its releases.")
    default: bool = Field(description="Whether it is the deployment's default image.")


class ImageList(Listing[ImageOut]):
    """Images by name."""


class UsableOut(Out):
    """An image that a project may use."""

    name: str = Field(description="Its name.")
    description: str = Field(description="For people.")
    state: ImageState = Field(description="Whether it is going to be retired.")
    channels: dict[str, int] = Field(description="Channel → release.")
    tools: dict[str, ToolVersions] = Field(
        description="Channel → the release's verified tools on the deployment's platform, or `unverified`."
    )
    platforms: list[str] = Field(description="Platforms of its usable releases.")
    default: bool = Field(description="Whether a Session that names no image gets it.")


class UsableList(Listing[UsableOut]):
    """Images by name."""


class KeptOut(Out):
    """A holding that stays."""

    node: str = Field(description="The node's name.")
    release: int = Field(description="The release's number.")
    why: str = Field(description="What needs it.")


class EvictedOut(Out):
    """A holding that goes."""

    node: str = Field(description="The node's name.")
    release: int = Field(description="The release's number.")


class EvictionOut(Out):
    """What an eviction did."""

    evicted: list[EvictedOut] = Field(description="What nodes were told to drop.")
    kept: list[KeptOut] = Field(description="What something still needs.")


def _pointer(channel: Channel) -> PointerOut:
    return PointerOut(release=channel.number, revision=channel.revision)


def image_out(entry: ImageEntry, default: ImageId | None) -> ImageOut:
    """From the domain."""
    image = entry.image
    return ImageOut(
        id=image.id,
        name=image.name,
        description=image.description,
        labels=dict(image.labels),
        state=image.state,
        tier=image.tier,
        revision=image.revision,
        created_at=image.created_at,
        channels={name: _pointer(channel) for name, channel in sorted(entry.channels.items())},
        releases=sorted(entry.releases),
        default=image.id == default,
    )


def _tools(held: ReleaseEntry, platform: Platform) -> Tools:
    release = held.release
    return held.tools(release.variant_for(platform) or release.variants[0])


def usable_out(entry: ImageEntry, platforms: Collection[str], default: ImageId | None, platform: Platform) -> UsableOut:
    """From the domain; tools are those of the variant for this platform, else of the first."""
    return UsableOut(
        name=entry.image.name,
        description=entry.image.description,
        state=entry.image.state,
        channels={name: channel.number for name, channel in sorted(entry.channels.items())},
        tools={
            name: versions_out(_tools(entry.releases[channel.number], platform))
            for name, channel in sorted(entry.channels.items())
        },
        platforms=sorted(platforms),
        default=entry.image.id == default,
    )
