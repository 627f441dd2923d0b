"""The catalog: images, their channels, and the view of them that a decision looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from sandbay.domain.ceiling import Tier
from sandbay.domain.contract import Checked, Contract
from sandbay.domain.ids import ImageId, ReleaseId
from sandbay.domain.release import ContentKey, Release, ReleaseState, ReleaseStatus, Variant
from sandbay.domain.requirement import Tools


class ImageState(StrEnum):
    """active → deprecated → retired, and back."""

    ACTIVE = "active"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Image:
    """A named, installation-wide entry. The name never changes."""

    id: ImageId
    name: str
    created_at: datetime
    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    state: ImageState = ImageState.ACTIVE
    revision: int = 1
    tier: Tier = Tier.STANDARD


@dataclass(frozen=True, slots=True)
class Channel:
    """A named pointer to a release number of one image."""

    image: ImageId
    name: str
    number: int
    revision: int = 1


@dataclass(frozen=True, slots=True)
class ChannelMove:
    """One line of a channel's history: who pointed it where, from where, and why. `before` is None for its first."""

    revision: int
    before: int | None
    number: int
    at: datetime
    principal: str
    why: str


@dataclass(frozen=True, slots=True)
class ReleaseEntry:
    """A release, where it stands, what it promises, and the newest report of each variant that was checked."""

    release: Release
    status: ReleaseStatus
    contract: Contract = field(default_factory=Contract)
    checked: Mapping[ContentKey, Checked] = field(default_factory=dict)

    def tools(self, variant: Variant) -> Tools:
        """The variant's verified tools; none where nothing has been verified."""
        checked = self.checked.get(variant.content_key)
        return {} if checked is None else checked.report.versions

    def is_due(self, variant: Variant) -> bool:
        """Whether a check was asked for that this variant has no report of yet."""
        if self.status.state is ReleaseState.REJECTED:
            return False
        checked = self.checked.get(variant.content_key)
        return (0 if checked is None else checked.number) < self.contract.checks


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """An image with its releases by number and its channels by name."""

    image: Image
    releases: Mapping[int, ReleaseEntry] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)

    def release_with(self, digest: str) -> ReleaseEntry | None:
        """The oldest release that has it, so that a later registration of the same bytes moves no reference."""
        numbers = (n for n, held in self.releases.items() if any(it.has(digest) for it in held.release.variants))
        number = min(numbers, default=None)
        return None if number is None else self.releases[number]


@dataclass(frozen=True)
class CatalogView:
    """What the path can name, already loaded; it looks nothing up by itself."""

    entries: tuple[ImageEntry, ...] = ()

    def image(self, name_or_id: str) -> ImageEntry | None:
        """The image with this name or id."""
        return self._by_name.get(name_or_id)

    def owner_of(self, release: ReleaseId) -> tuple[ImageEntry, int] | None:
        """The image and number of the release with this id."""
        return self._by_release.get(release)

    @cached_property
    def _by_name(self) -> Mapping[str, ImageEntry]:
        return {key: entry for entry in self.entries for key in (entry.image.name, entry.image.id)}

    @cached_property
    def _by_release(self) -> Mapping[ReleaseId, tuple[ImageEntry, int]]:
        releases = ((entry, number, held) for entry in self.entries for number, held in entry.releases.items())
        return {held.release.id: (entry, number) for entry, number, held in releases}
