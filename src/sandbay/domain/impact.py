"""What would change if …: a supposition, whose Sessions are asked about, and what they would come to."""

from dataclasses import dataclass, field
from enum import StrEnum

from sandbay.domain.binding import Binding
from sandbay.domain.catalog import ReleaseEntry
from sandbay.domain.ceiling import AllowList
from sandbay.domain.errors import Refusal
from sandbay.domain.ids import ImageId
from sandbay.domain.path import Path, Subject
from sandbay.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class BindingWritten:
    """This subject's binding were that; None: there were none."""

    subject: Subject
    binding: Binding | None


@dataclass(frozen=True, slots=True)
class AllowListWritten:
    """This subject's allow-list were that; None: there were none."""

    subject: Subject
    allowed: AllowList | None


@dataclass(frozen=True, slots=True)
class ChannelMoved:
    """The channel pointed at this release, active by then. `proved`: as it will be, where it is not so yet."""

    image: ImageId
    channel: str
    number: int
    proved: ReleaseEntry | None = None


@dataclass(frozen=True, slots=True)
class Retired:
    """The release were retired; without a number, the whole image."""

    image: ImageId
    number: int | None = None


Supposition = BindingWritten | AllowListWritten | ChannelMoved | Retired


class AskerKind(StrEnum):
    """Whose Sessions: those that name nothing but this."""

    PROJECT = "project"
    TEMPLATE = "template"
    AGENT = "agent"
    SCOPE = "scope"


@dataclass(frozen=True, slots=True)
class Asker:
    """Somebody whose Sessions come to one answer, and where they stand. `name` is unique for its kind and project."""

    kind: AskerKind
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What a Session comes to: `web:7`, or the reason why there is none, with all that is to be said of it."""

    image: str | None = None
    reason: Reason | None = None
    refusal: Refusal | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Impact:
    """One whose answer changes."""

    asker: Asker
    before: Answer
    after: Answer

    @property
    def loses(self) -> bool:
        """Whether there was an image and will be none."""
        return self.before.image is not None and self.after.image is None
