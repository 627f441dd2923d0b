"""Who said what on the way to a release: levels, typed steps, who decided. Rendering is for others."""

from dataclasses import dataclass
from enum import StrEnum

from sandbay.domain.reasons import Reason


class Level(StrEnum):
    """Where a wish for an image can stand, narrow to broad."""

    SESSION = "session"
    TEMPLATE = "template"
    AGENT = "agent"
    SCOPE = "scope"
    PROJECT = "project"
    DEPLOYMENT = "deployment"


@dataclass(frozen=True, slots=True)
class Policy:
    """The order of levels, as data: the first preference that speaks decides.

    What is enforced speaks in the opposite order. `support_may_wait`: while the deployment has no pools, support is
    left unchecked and warned of. That is for what is written now and used later; a Session is never admitted so.
    `ceilings`: whether they are looked at; not where nobody's Session is meant, as for the base of a build.
    """

    precedence: tuple[Level, ...] = tuple(Level)
    support_may_wait: bool = False
    ceilings: bool = True


@dataclass(frozen=True, slots=True)
class Saying:
    """What one level says. `reference` is None when it is silent; `subject` is whose word it is, as people call it."""

    level: Level
    subject: str | None = None
    reference: str | None = None
    enforced: bool = False


def whose(level: Level, subject: str | None) -> str:
    """Level and subject in a sentence: `the scope team:growth`, `the deployment`."""
    return f"the {level.value}" if subject is None else f"the {level.value} {subject}"


EXPLICIT = frozenset({Level.SESSION, Level.TEMPLATE})
"""Where a word is a wish of whoever asks. Everywhere else it is standing."""


class Outcome(StrEnum):
    """What became of a level's word. A candidate is at one with the word that was taken, or was in its way."""

    SILENT = "silent"
    CANDIDATE = "candidate"
    CHOSEN = "chosen"
    OVERRULED = "overruled"
    REFUSED = "refused"
    WARNED = "warned"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the trail."""

    level: Level
    outcome: Outcome
    subject: str | None = None
    said: str | None = None
    reason: Reason | None = None
    enforced: bool = False


Trail = tuple[Step, ...]

DEPRECATED = "deprecated"
SUPPORT_UNCHECKED = "support_unchecked"
"""What a warning says: the image or release is deprecated; no pool is there that could have to support it."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The level and subject whose word was taken."""

    level: Level
    subject: str | None = None
