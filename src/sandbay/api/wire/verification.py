"""What was seen when an image's bytes were looked at again."""

from pydantic import Field

from sandbay.api.wire.base import Failure, Out, failure_of
from sandbay.app.verify import Looked
from sandbay.domain.catalog import ImageEntry
from sandbay.domain.verification import Seen, Verification

_MENDED_BY = (
    "register the release from the same source again: that replaces the blob;"
    " where a registry keeps the installation's blobs, delete it there first"
)
_FETCHED = "nothing: the node fetches it again"


class LookedOut(Out):
    """How far a verification is."""

    bytes_done: int = Field(description="Bytes of blobs that have been looked at.")
    bytes_total: int = Field(description="In all: those of the store once, and once more for each node.")


class SeenBlobOut(Out):
    """A blob of the installation's store."""

    digest: str = Field(description="Its digest.")
    size: int = Field(description="Its size in bytes.")
    releases: list[int] = Field(description="The releases that need it.")
    seen: Seen = Field(description="`unknown` where it could not be read; that says nothing of it.")
    fault: Failure | None = Field(description="What is wrong with it, or why it could not be read.")
    do: str | None = Field(description="What mends it, for people.")


class SeenOnNodeOut(Out):
    """A variant on a node that had it ready."""

    node: str = Field(description="The node's name.")
    node_id: str = Field(description="The node's id.")
    release: int = Field(description="The release's number.")
    platform: str = Field(description="The variant's platform.")
    seen: Seen = Field(description="`unknown` where it could not be compared; it stays ready.")
    fault: Failure | None = Field(description="What is wrong with it, or why it could not be compared.")
    do: str | None = Field(description="What mends it, for people.")


class VerificationOut(Out):
    """What was seen of an image's bytes."""

    image: str = Field(description="The image's name.")
    seen: Seen = Field(description="The worst of all.")
    blobs: list[SeenBlobOut] = Field(description="The blobs in the installation's store.")
    nodes: list[SeenOnNodeOut] = Field(description="What nodes made of them; those that had it ready.")


def looked_out(looked: Looked) -> LookedOut:
    """From the use case."""
    return LookedOut(bytes_done=looked.bytes_done, bytes_total=looked.bytes_total)


def verification_out(entry: ImageEntry, found: Verification) -> VerificationOut:
    """From the domain."""
    platforms = {v.content_key: str(v.platform) for held in entry.releases.values() for v in held.release.variants}
    return VerificationOut(
        image=entry.image.name,
        seen=found.seen,
        blobs=[
            SeenBlobOut(
                digest=blob.digest,
                size=blob.size,
                releases=list(blob.numbers),
                seen=blob.seen,
                fault=failure_of(blob.fault),
                do=_MENDED_BY if blob.seen is Seen.DAMAGED else None,
            )
            for blob in found.blobs
        ],
        nodes=[
            SeenOnNodeOut(
                node=it.node_name,
                node_id=it.node,
                release=it.number,
                platform=platforms[it.key],
                seen=it.seen,
                fault=failure_of(it.fault),
                do=_FETCHED if it.seen is Seen.DAMAGED else None,
            )
            for it in found.nodes
        ],
    )
