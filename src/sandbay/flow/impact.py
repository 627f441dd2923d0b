"""What would change if …: the installation as it would be, and whose answers then differ.

Nothing is decided here: `flow.resolve` answers for the installation as it is and as it would be, in the same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from sandbay.domain.catalog import CatalogView, Channel, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.ceiling import Standing
from sandbay.domain.choosing import Rejected, Selected
from sandbay.domain.ids import ImageId
from sandbay.domain.impact import (
    AllowListWritten,
    Answer,
    Asker,
    BindingWritten,
    ChannelMoved,
    Impact,
    Retired,
    Supposition,
)
from sandbay.domain.path import Subject
from sandbay.domain.release import ReleaseState

T = TypeVar("T")


@dataclass(frozen=True)
class Installed:
    """The catalog and all that stands in the installation."""

    catalog: CatalogView
    standing: Standing


def suppose(it: Installed, what: Supposition) -> Installed:
    """The installation as it would be. Raises KeyError where an image or a release is meant that is not there."""
    match what:
        case BindingWritten(subject, binding):
            bindings = _written(it.standing.bindings, subject, binding)
            return replace(it, standing=replace(it.standing, bindings=bindings))
        case AllowListWritten(subject, allowed):
            lists = _written(it.standing.allowed, subject, allowed)
            return replace(it, standing=replace(it.standing, allowed=lists))
        case ChannelMoved(image, channel, to, proved):
            return _changed(it, image, lambda entry: _moved(entry, channel, proved or entry.releases[to]))
        case Retired(image, number):
            return _changed(it, image, lambda entry: _retired(entry, number))


def touches(what: Supposition, asker: Asker) -> bool:
    """Whether it can change this one's answer at all."""
    match what:
        case BindingWritten(subject, _) | AllowListWritten(subject, _):
            return subject in asker.path.subjects
        case ChannelMoved() | Retired():
            return True


def answer_of(outcome: Selected | Rejected) -> Answer:
    """What a Session runs or why it does not, whoever decided it."""
    if isinstance(outcome, Rejected):
        return Answer(reason=outcome.refusal.reason, refusal=outcome.refusal)
    return Answer(f"{outcome.entry.image.name}:{outcome.release.number}")


def impacts(before: Mapping[Asker, Answer], after: Mapping[Asker, Answer]) -> tuple[Impact, ...]:
    """Those whose answers differ, in the order of `before`."""
    return tuple(Impact(asker, was, after[asker]) for asker, was in before.items() if after[asker] != was)


def _written(rows: Mapping[Subject, T], subject: Subject, row: T | None) -> Mapping[Subject, T]:
    others = {at: there for at, there in rows.items() if at != subject}
    return others if row is None else {**others, subject: row}


def _changed(it: Installed, image: ImageId, change: Callable[[ImageEntry], ImageEntry]) -> Installed:
    if it.catalog.image(image) is None:
        raise KeyError(image)
    entries = tuple(change(entry) if entry.image.id == image else entry for entry in it.catalog.entries)
    return replace(it, catalog=CatalogView(entries))


def _moved(entry: ImageEntry, channel: str, to: ReleaseEntry) -> ImageEntry:
    number = to.release.number
    active = replace(to, status=replace(to.status, state=ReleaseState.ACTIVE))
    channels = {**entry.channels, channel: Channel(entry.image.id, channel, number)}
    return replace(entry, channels=channels, releases={**entry.releases, number: active})


def _retired(entry: ImageEntry, number: int | None) -> ImageEntry:
    if number is None:
        return replace(entry, image=replace(entry.image, state=ImageState.RETIRED))
    return replace(entry, releases={**entry.releases, number: _stopped(entry.releases[number])})


def _stopped(held: ReleaseEntry) -> ReleaseEntry:
    return replace(held, status=replace(held.status, state=ReleaseState.RETIRED))
