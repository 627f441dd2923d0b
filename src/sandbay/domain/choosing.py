"""What is asked of a choice, and what it can come to: one variant of one release, or one named refusal."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.domain.catalog import ImageEntry
from sandbay.domain.errors import Refusal
from sandbay.domain.platform import Platform
from sandbay.domain.release import Release, Variant
from sandbay.domain.requirement import Required, Tools
from sandbay.domain.trail import DecidedBy, Saying, Trail


@dataclass(frozen=True)
class Request:
    """What one Session asks of its image, itself and through its Template. A silent wish has no reference."""

    wishes: tuple[Saying, ...]
    platform: Platform
    required: Sequence[Required] = ()


@dataclass(frozen=True)
class Selected:
    """Exactly one variant with its verified tools, who decided, and how. `reference` is the word that was taken."""

    entry: ImageEntry
    release: Release
    variant: Variant
    tools: Tools
    reference: str
    decided_by: DecidedBy
    trail: Trail


@dataclass(frozen=True, slots=True)
class Rejected:
    """The first failure, and how it came to be. `refusal.param` is a field of this request or None."""

    refusal: Refusal
    trail: Trail
