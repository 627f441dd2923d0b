"""What image bytes take on one node: parts that variants share, the budget for them, and what keeps them there."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from sandbay.domain.release import ContentKey, Layer

Parts = Mapping[str, int]
"""Pieces of bytes that variants may share, by a name of the provider's own (a layer's diff id), each with its size."""

_GROWS = MappingProxyType({"gzip": 3, "zstd": 3, "plain": 1})
"""How many times as large a packed layer becomes: what real images need, and a little more."""


class Kept(StrEnum):
    """Why a variant may not be let go."""

    REQUIRED = "required"
    SESSION = "session"
    WAITING = "waiting"
    WISH = "wish"
    PRELOAD = "preload"
    PREPARING = "preparing"


@dataclass(frozen=True, slots=True)
class HeldVariant:
    """A variant that is there whole: its parts, and when a sandbox of it was last started or ended."""

    key: ContentKey
    parts: frozenset[str]
    used_at: datetime


@dataclass(frozen=True, slots=True)
class Marks:
    """Bytes. Above `high` variants are let go until `low` is reached; beyond `budget` nothing is begun."""

    budget: int
    high: int
    low: int


@dataclass(frozen=True, slots=True)
class DiskBudget:
    """What an operator grants the images of one node.

    `bytes`, or where that is None a `share` of the file system. The marks are shares of whichever it is.
    """

    bytes: int | None = None
    share: float = 0.8
    high: float = 0.9
    low: float = 0.75

    def marks(self, used: int, free: int, total: int) -> Marks:
        """The marks now. What others have filled is not ours to use: the budget shrinks to what is left of the disk."""
        granted = round(total * self.share) if self.bytes is None else self.bytes
        budget = max(min(granted, used + free), 0)
        return Marks(budget, round(budget * self.high), round(budget * self.low))


@dataclass(frozen=True, slots=True)
class Disk:
    """All image bytes of one node. `parts` holds also what belongs to no variant; `free` is the file system's."""

    parts: Parts
    held: tuple[HeldVariant, ...]
    marks: Marks
    free: int

    @property
    def used(self) -> int:
        """Bytes, each part once."""
        return sum(self.parts.values())

    def size(self, parts: Iterable[str]) -> int:
        """Bytes of these parts together, each once."""
        return sum(self.parts[part] for part in set(parts))

    def only(self, keys: Collection[ContentKey]) -> frozenset[str]:
        """The parts that nothing but these variants has."""
        mine = {part for it in self.held if it.key in keys for part in it.parts}
        return frozenset(mine.difference(*(it.parts for it in self.held if it.key not in keys)))


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes: all that an owner has, each part once, and what no other has as well."""

    bytes: int
    unique: int


def shares(disk: Disk, owners: Mapping[ContentKey, Collection[str]]) -> Mapping[str, Share]:
    """What each owner has of the disk. A variant without an owner owns itself, by its content key."""
    whose: dict[str, set[str]] = {}
    for it in disk.held:
        for part in it.parts:
            whose.setdefault(part, set()).update(owners.get(it.key) or (it.key,))
    has: dict[str, list[str]] = {owner: [] for it in disk.held for owner in owners.get(it.key) or (it.key,)}
    for part, names in whose.items():
        for name in names:
            has[name].append(part)
    return {
        owner: Share(disk.size(parts), disk.size(part for part in parts if len(whose[part]) == 1))
        for owner, parts in has.items()
    }


@dataclass(frozen=True, slots=True)
class Coming:
    """What a variant would take that is not there: certainly (`least`), and most likely."""

    least: Parts
    likely: Parts


def coming(layers: Iterable[Layer]) -> Coming:
    """As far as its layers tell before they are unpacked: a packed layer becomes larger, and none becomes smaller."""
    distinct = {layer.diff_id: layer for layer in layers}
    return Coming(
        {name: layer.size for name, layer in distinct.items()},
        {name: layer.size * _GROWS[layer.format] for name, layer in distinct.items()},
    )
