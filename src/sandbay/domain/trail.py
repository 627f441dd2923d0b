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

    `support_may_wait`: while the deployment has no pools, support is left unchecked and warned of. That is for what
    is written now and used later; a Session is never admitted so.
    """

    precedence: tuple[Level, ...] = tuple(Level)
    support_may_wait: bool = False


@dataclass(frozen=True, slots=True)
class Saying:
    """What one level says. `reference` is None when it is silent; `subject` is whose word it is."""

    level: Level
    subject: str | None = None
    reference: str | None = None


class Outcome(StrEnum):
    """What became of a level's word."""

    SILENT = "silent"
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


Trail = tuple[Step, ...]

DEPRECATED = "deprecated"
SUPPORT_UNCHECKED = "support_unchecked"
"""What a warning says: the image or release is deprecated; no pool is there that could have to support it."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The level and subject whose word was taken."""

    level: Level
    subject: str | None = None
