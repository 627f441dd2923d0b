"""What is pinned to an exact release stays on it; that its channel has moved on is only told."""

from sandbay.domain.catalog import CatalogView, ImageEntry
from sandbay.domain.reference import STABLE, ByChannel, ByDigest, ByNumber, OfImage, OfRelease, Selector, parse_image


def upgrade_available(text: str, catalog: CatalogView) -> str | None:
    """`NAME:NUMBER` of what the image's stable channel points at, when the text is pinned to an older release.

    None for a text that follows a channel, and for a release that is not there.
    """
    pinned = _pinned(text, catalog)
    if pinned is None:
        return None
    entry, number = pinned
    stable = entry.channels.get(STABLE)
    return f"{entry.image.name}:{stable.number}" if stable is not None and stable.number > number else None


def _pinned(text: str, catalog: CatalogView) -> tuple[ImageEntry, int] | None:
    match parse_image(text):
        case OfRelease(release):
            return catalog.owner_of(release)
        case OfImage(name, selector):
            entry = catalog.image(name)
            number = None if entry is None else _number(entry, selector)
            return None if entry is None or number is None else (entry, number)
        case _:
            return None


def _number(entry: ImageEntry, selector: Selector) -> int | None:
    match selector:
        case ByNumber(number):
            return number if number in entry.releases else None
        case ByDigest(digest):
            held = entry.release_with(digest)
            return None if held is None else held.release.number
        case ByChannel():
            return None
