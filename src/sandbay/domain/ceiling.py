"""Ceilings: what may be chosen along a path, whoever chooses. They only ever refuse; none of them picks an image."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sandbay.domain.binding import Binding, Written
from sandbay.domain.ids import ImageId
from sandbay.domain.path import Subject


class Tier(StrEnum):
    """A restricted image needs a grant to the project or to a scope of the path."""

    STANDARD = "standard"
    RESTRICTED = "restricted"


class Override(StrEnum):
    """Whether a Session request may name an image. One `deny` on the path is enough to refuse it."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class AllowList:
    """The images that may be chosen: all, or these names, image ids and label selectors. Empty: none.

    A selector is met by an image that has each of its labels with this value; one selector is enough. An empty one is
    met by none: nobody opens a list by leaving something out.
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    selectors: tuple[Mapping[str, str], ...] = ()

    def admits(self, names: Collection[str], labels: Mapping[str, str]) -> bool:
        """Whether the image with these names (its name and its id) and labels is on it."""
        return (
            self.everything
            or not self.names.isdisjoint(names)
            or any(bool(selector) and selector.items() <= labels.items() for selector in self.selectors)
        )


EVERYTHING = AllowList(everything=True)
NOTHING = AllowList()


@dataclass(frozen=True, slots=True)
class AllowListAt:
    """The row: this subject's allow-list. Without a row everything is allowed there."""

    subject: Subject
    allowed: AllowList
    written: Written


@dataclass(frozen=True, slots=True)
class OverrideAt:
    """The row: this subject's word on request overrides. Without a row it is `allow`."""

    subject: Subject
    override: Override
    written: Written


@dataclass(frozen=True, slots=True)
class Grant:
    """The row: this project or scope may use that restricted image. Only the administrator grants."""

    subject: Subject
    image: ImageId
    written: Written


@dataclass(frozen=True)
class Standing:
    """All that stands along one path, already loaded and of one moment. What has no entry has no row."""

    bindings: Mapping[Subject, Binding] = field(default_factory=dict)
    allowed: Mapping[Subject, AllowList] = field(default_factory=dict)
    overrides: Mapping[Subject, Override] = field(default_factory=dict)
    grants: Mapping[Subject, frozenset[ImageId]] = field(default_factory=dict)


NOTHING_STANDS = Standing()
