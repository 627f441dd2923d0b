"""Bindings: "this subject uses that image", as a preference or enforced, at one level."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sandbay.domain.path import Subject
from sandbay.domain.trail import Level


class Mode(StrEnum):
    """A preference gives way to a narrower one and to an explicit wish; what is enforced gives way to neither."""

    PREFER = "prefer"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Written:
    """Who wrote a row, when and why. `revision` counts the writes of this row."""

    author: str
    at: datetime
    reason: str | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Binding:
    """At most one per subject; a second write replaces it. `reference` is any of our references, as it was written."""

    subject: Subject
    mode: Mode
    reference: str
    written: Written


MODES: dict[Level, frozenset[Mode]] = {
    Level.DEPLOYMENT: frozenset({Mode.ENFORCE}),
    Level.PROJECT: frozenset(Mode),
    Level.SCOPE: frozenset(Mode),
    Level.AGENT: frozenset(Mode),
}
"""Where a binding can stand, and as what. What the deployment prefers is its default image."""
