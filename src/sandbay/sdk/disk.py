"""What image bytes take on nodes, as an installation tells it. Sizes in bytes, each layer counted once."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.wire import Resource, each, moment, take


@dataclass(frozen=True, kw_only=True)
class ReleaseOnDisk(Resource):
    """One release on one node; `kept` is why it may not go, `goes_next` that it goes at the node's next look."""

    release: int
    platform: str
    bytes: int
    shared: int
    unique: int
    digest: str | None = None
    last_used: dt.datetime | None = None
    kept: str | None = None
    why: str | None = None
    goes_next: bool = False

    @classmethod
    def of(cls, data: Any) -> "ReleaseOnDisk":
        """From one item of an image's `releases`."""
        return take(cls, data, last_used=moment)


@dataclass(frozen=True, kw_only=True)
class ImageOnDisk(Resource):
    """All releases of an image on one node: `shared` is what other images have as well."""

    image: str
    bytes: int
    shared: int
    unique: int
    releases: tuple[ReleaseOnDisk, ...] = ()

    @classmethod
    def of(cls, data: Any) -> "ImageOnDisk":
        """From one item of a node's `images`."""
        return take(cls, data, releases=each(ReleaseOnDisk.of))


@dataclass(frozen=True, kw_only=True)
class WaitingForRoom(Resource):
    """A release that is wanted on a node and does not fit yet; `bytes` is what it will most likely take."""

    image: str
    release: int
    bytes: int

    @classmethod
    def of(cls, data: Any) -> "WaitingForRoom":
        """From one item of a node's `waiting`."""
        return take(cls, data)


@dataclass(frozen=True, kw_only=True)
class NodeDisk(Resource):
    """The images of one node; `known` is false where it does not tell. Above `high` it lets go until `low` is left."""

    node: str
    node_id: str
    known: bool = True
    used: int = 0
    budget: int = 0
    high: int = 0
    low: int = 0
    free: int = 0
    leftover: int = 0
    images: tuple[ImageOnDisk, ...] = ()
    waiting: tuple[WaitingForRoom, ...] = ()

    @classmethod
    def of(cls, data: Any) -> "NodeDisk":
        """From one item of `sandbox/disk`."""
        return take(cls, data, images=each(ImageOnDisk.of), waiting=each(WaitingForRoom.of))
