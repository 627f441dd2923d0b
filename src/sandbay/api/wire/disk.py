"""What image bytes take on a node."""

from collections.abc import Iterable
from datetime import datetime

from pydantic import Field

from sandbay.api.wire.base import Listing, Out
from sandbay.app.disk import NodeDisk, OnDisk
from sandbay.domain.disk import Disk, Kept, Share, shares
from sandbay.ports.records import KnownVariant

_WHY = {
    Kept.REQUIRED: "it is required on this node",
    Kept.SESSION: "a Session runs from it",
    Kept.WAITING: "a Session waits for it",
    Kept.WISH: "it was asked for and is being prepared",
    Kept.PRELOAD: "it is being prepared ahead of demand",
    Kept.PREPARING: "it is being prepared or proved",
}


class ReleaseOnDisk(Out):
    """One variant of a release on one node."""

    release: int = Field(description="The release's number.")
    platform: str = Field(description="os/architecture[/variant].")
    digest: str | None = Field(description="The variant's manifest digest.")
    bytes: int = Field(description="What it takes, unpacked.")
    shared: int = Field(description="Of these, what other releases have as well: it is there once.")
    unique: int = Field(description="Of these, what no other release has.")
    last_used: datetime = Field(description="When a sandbox of it was last started or ended, or it was prepared.")
    kept: Kept | None = Field(description="Why it may not go; null when it may.")
    why: str | None = Field(description="The same for people.")
    goes_next: bool = Field(description="Whether it goes at the node's next look, to make room.")


class ImageOnDisk(Out):
    """All releases of an image on one node."""

    image: str = Field(description="The image's name.")
    bytes: int = Field(description="What its releases take together, each layer once.")
    shared: int = Field(description="Of these, what other images have as well: it is there once.")
    unique: int = Field(description="Of these, what no other image has.")
    releases: list[ReleaseOnDisk] = Field(description="Those that are there whole, by number.")


class WaitingForRoom(Out):
    """A release that is wanted and does not fit yet."""

    image: str = Field(description="The image's name.")
    release: int = Field(description="The release's number.")
    bytes: int = Field(description="What it will most likely take, layers that are there already included.")


class DiskOut(Out):
    """The images of one node. Sizes are bytes, each layer counted once."""

    node: str = Field(description="The node's name.")
    node_id: str = Field(description="The node's id.")
    known: bool = Field(description="Whether the node tells: not while it is away, or where a daemon owns the bytes.")
    used: int = Field(description="What images take.")
    budget: int = Field(description="What they may take: what the operator grants, or what is left of the disk.")
    high: int = Field(description="Above this the longest unused releases are let go.")
    low: int = Field(description="Until this much is left.")
    free: int = Field(description="What is free in the store's file system.")
    leftover: int = Field(description="Of `used`, what no release has: layers of a prepare that has not ended.")
    images: list[ImageOnDisk] = Field(description="By name.")
    waiting: list[WaitingForRoom] = Field(description="What is not begun before there is room for it.")


class DiskList(Listing[DiskOut]):
    """Nodes by name."""


def disk_out(found: NodeDisk) -> DiskOut:
    """From the domain."""
    disk = found.disk
    return DiskOut(
        node=found.node.name,
        node_id=found.node.id,
        known=disk is not None,
        used=disk.used if disk else 0,
        budget=disk.marks.budget if disk else 0,
        high=disk.marks.high if disk else 0,
        low=disk.marks.low if disk else 0,
        free=disk.free if disk else 0,
        leftover=_leftover(disk, found.variants) if disk else 0,
        images=_images(disk, found) if disk else [],
        waiting=[WaitingForRoom(image=it.image_name, release=it.number, bytes=size) for it, size in found.waiting],
    )


def _leftover(disk: Disk, variants: Iterable[OnDisk]) -> int:
    named = {part for it in variants if it.releases for part in it.held.parts}
    return sum(size for part, size in disk.parts.items() if part not in named)


def _images(disk: Disk, found: NodeDisk) -> list[ImageOnDisk]:
    by_image = shares(disk, {it.held.key: {known.image_name for known in it.releases} for it in found.variants})
    by_release = shares(disk, {it.held.key: {known.release for known in it.releases} for it in found.variants})
    lines: dict[str, list[ReleaseOnDisk]] = {}
    for it in found.variants:
        for known in it.releases:
            line = _release(it, known, by_release[known.release], goes=it.held.key in found.next)
            lines.setdefault(known.image_name, []).append(line)
    return [
        ImageOnDisk(image=name, releases=sorted(lines[name], key=lambda line: line.release), **_sizes(by_image[name]))
        for name in sorted(lines)
    ]


def _release(it: OnDisk, known: KnownVariant, share: Share, *, goes: bool) -> ReleaseOnDisk:
    return ReleaseOnDisk(
        release=known.number,
        platform=str(known.variant.platform),
        digest=known.variant.digest,
        last_used=it.held.used_at,
        kept=it.kept,
        why=None if it.kept is None else _WHY[it.kept],
        goes_next=goes,
        **_sizes(share),
    )


def _sizes(share: Share) -> dict[str, int]:
    return {"bytes": share.bytes, "shared": share.bytes - share.unique, "unique": share.unique}
