"""Which of the images behind an index is meant: by name first, then by platform, never by being the only one left.

index.json ─by name─▶ one image ─indexes opened─▶ candidates in order ─by platform, first match─▶ one manifest
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sandbay.domain.errors import RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import Descriptor, IndexEntry, check_limit, parse_index
from sandbay.engine.media import DOCUMENTS, Kind

ReadIndex = Callable[[Descriptor], bytes]
"""Reads an index's bytes, verified."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A manifest that may be chosen. `platform` is None where no index says one, and the config has to."""

    descriptor: Descriptor
    platform: Platform | None
    index_digest: str | None


def one_image(entries: Sequence[IndexEntry], tag: str | None) -> tuple[IndexEntry, ...]:
    """The entries of the one image that is meant: several only where they differ in nothing but the platform.

    Refuses with `not_an_image` when there is none, and with `ambiguous_archive` (details: `choices`) when there
    are several, or none has this tag.
    """
    if not entries:
        raise RefusedError(Reason.NOT_AN_IMAGE, "there is no image in it")
    named = [entry for entry in entries if tag in (None, entry.name, entry.full_name)]
    if not named:
        raise _ambiguous("no image in it has this tag", entries)
    by_name: dict[str | None, list[IndexEntry]] = {}
    for entry in named:
        by_name.setdefault(entry.full_name or entry.name, []).append(entry)
    images = {tuple(entry.descriptor.digest for entry in image): image for image in by_name.values()}
    image, *others = images.values()
    platforms = [entry.platform for entry in image]
    if others or (len(image) > 1 and (None in platforms or len(set(platforms)) < len(platforms))):
        raise _ambiguous("there are several images in it", entries)
    return tuple(image)


def _ambiguous(why: str, entries: Iterable[IndexEntry]) -> RefusedError:
    choices = sorted({entry.full_name or entry.name or entry.descriptor.digest for entry in entries})
    return RefusedError(Reason.AMBIGUOUS_ARCHIVE, why, details={"choices": choices})


class _Indexes:
    """Opens indexes, depth first, within the bounds."""

    def __init__(self, read: ReadIndex, limits: Limits) -> None:
        self._read, self._limits = read, limits
        self._opened = 0

    def walk(self, entries: Iterable[IndexEntry], outermost: str | None, depth: int) -> Iterator[Candidate]:
        for entry in entries:
            descriptor = entry.descriptor
            if DOCUMENTS.get(descriptor.media_type) is not Kind.INDEX:
                yield Candidate(descriptor, entry.platform, outermost)
                continue
            self._opened += 1
            check_limit("index_depth", depth + 1, self._limits.index_depth)
            check_limit("index_documents", self._opened, self._limits.index_documents)
            inner = parse_index(self._read(descriptor), descriptor.media_type)
            yield from self.walk(inner, outermost or descriptor.digest, depth + 1)


def candidates(entries: Iterable[IndexEntry], read: ReadIndex, limits: Limits) -> tuple[Candidate, ...]:
    """All manifests behind these entries, in order. Refuses with `limit_exceeded` where indexes nest too deep."""
    return tuple(_Indexes(read, limits).walk(entries, None, 0))
