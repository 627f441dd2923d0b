"""What a project may use, and what a reference to one image's release means."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.app.core import Core
from sandbay.app.images import find_channel, find_release
from sandbay.domain.catalog import ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import ByChannel, ByDigest, ByNumber, Malformed, OfImage, OfRelease, parse_image
from sandbay.domain.release import ReleaseState
from sandbay.ports.store import Images

_USABLE = frozenset({ReleaseState.ACTIVE, ReleaseState.DEPRECATED})


@dataclass(frozen=True)
class Offer:
    """An image that takes new Sessions, and the platforms of its usable releases."""

    entry: ImageEntry
    platforms: frozenset[str]


def offers(core: Core) -> Sequence[Offer]:
    """Every image that is not retired and has a release to run."""
    entries = [e for e in core.store.read(Images()) if e.image.state is not ImageState.RETIRED]
    return [offer for offer in map(_offer, entries) if offer.platforms]


def _offer(entry: ImageEntry) -> Offer:
    usable = [held.release for held in entry.releases.values() if held.status.state in _USABLE]
    return Offer(entry, frozenset(str(v.platform) for release in usable for v in release.variants))


def release_named(entry: ImageEntry, reference: str | None) -> int | None:
    """The number of the one release that the reference means; None when it means the whole image."""
    if reference is None:
        return None
    try:
        return _number(entry, reference)
    except RefusedError as error:
        refusal = error.refusal
        raise RefusedError(refusal.reason, refusal.message, param="reference", details=refusal.details) from error


def _number(entry: ImageEntry, reference: str) -> int | None:
    image = entry.image
    match parse_image(reference):
        case Malformed(why):
            raise RefusedError(Reason.INVALID_REFERENCE, why)
        case OfImage(name, selector) if name in (image.name, image.id):
            match selector:
                case ByNumber(number):
                    return find_release(entry, number).release.number
                case ByChannel(channel, said):
                    return find_channel(entry, channel).number if said else None
                case ByDigest(digest):
                    return _with_digest(entry, digest).release.number
        case OfRelease(release):
            for held in entry.releases.values():
                if held.release.id == release:
                    return held.release.number
            raise RefusedError(Reason.RELEASE_UNKNOWN, f"{image.name} has no release {release}")
        case _:
            raise RefusedError(Reason.INVALID_REFERENCE, f"this is no reference to {image.name}")


def _with_digest(entry: ImageEntry, digest: str) -> ReleaseEntry:
    for held in entry.releases.values():
        if any(digest in (v.digest, v.index_digest) for v in held.release.variants):
            return held
    raise RefusedError(Reason.RELEASE_UNKNOWN, f"no release of {entry.image.name} has this digest")
