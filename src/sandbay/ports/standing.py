"""What stands along a path, in the store: scopes, bindings, ceilings. The changes and the queries of it.

The rows of one subject are found by their key, so what a Session's path costs grows with its levels, whatever else
is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sandbay.domain.binding import Binding
from sandbay.domain.ceiling import AllowListAt, Grant, OverrideAt, Standing
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import Subject
from sandbay.domain.scope import Lineage, Scope
from sandbay.ports.changes import Change
from sandbay.ports.records import FIRST_PAGE, Page
from sandbay.ports.store import Query

Standard = Binding | AllowListAt | OverrideAt | Grant
"""What can stand under a subject; `written.revision` counts the writes of a row while it is there."""

RowT = TypeVar("RowT", bound=Standard)


@dataclass(frozen=True, slots=True)
class PutScope(Change):
    """Register a scope (revision 1), or move it below another parent.

    Relies on the stored revision being `scope.revision - 1` (0: there is none), on its project being what it was
    (`TAKEN`, current: the scope), on `parent_fault` having none with the parent's lineage as it is now (`IN_USE`,
    current: the sentence), and on nothing below it then standing deeper than a path may be (`LIMIT`).
    """

    scope: Scope


@dataclass(frozen=True, slots=True)
class DropScope(Change):
    """Forget it. Sessions that name it keep its name.

    Relies on the stored revision being `revision`, and on nothing that would come to mean something else (`IN_USE`,
    current: what): a scope below it, a row that stands under it, a key that is held to it.
    """

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class PutStanding(Change):
    """Write the row, in place of the one of the same subject (of a grant: and image).

    Relies on the stored revision being `row.written.revision - 1` (0: there is none), and on a scope that it stands
    under, and an image that it names, being there (`MISSING`).
    """

    row: Standard


@dataclass(frozen=True, slots=True)
class DropStanding(Change):
    """Take the row away. Relies on the stored revision being `row.written.revision`."""

    row: Standard


@dataclass(frozen=True, slots=True)
class LineageOf(Query[Lineage]):
    """A scope and its parents, narrowest first; empty when it is not registered."""

    name: str


@dataclass(frozen=True, slots=True)
class Scopes(Query[Sequence[Scope]]):
    """By name; `page.after` is a name.

    With a project its own and those that are for every project; with `below` that scope and what stands below it.
    """

    project: ProjectId | None = None
    below: str | None = None
    page: Page = FIRST_PAGE


@dataclass(frozen=True, slots=True)
class StandingOf(Query[Standing]):
    """All that stands under these subjects, of one moment."""

    subjects: frozenset[Subject] = field(default_factory=frozenset)


@dataclass(frozen=True)
class RowsOf(Query[Sequence[RowT]], Generic[RowT]):
    """The rows of one kind by their key: under one subject when given. `page.after` is a `key_of`."""

    kind: type[RowT]
    subject: Subject | None = None
    page: Page = FIRST_PAGE


def key_of(row: Standard) -> str:
    """Where a row stands in the order of its kind."""
    at = subject_text(row.subject)
    return f"{at} {row.image}" if isinstance(row, Grant) else at


def subject_text(subject: Subject) -> str:
    """The subject as one word: `deployment`, `project:prj_…`, `scope:team:growth`, `agent:prj_…:coder`. No blanks."""
    parts = (subject.level, subject.project, subject.name)
    return ":".join(part for part in parts if part is not None)
