"""Scopes: where in an organisation a Session acts, and what a key is held to.

    org:acme ◀── team:growth ◀── room:deal-desk        a row names its parent; a Session names the narrowest
                                                       scope, and Core derives the path from the rows

A scope with a project is that project's alone; one without may be named by every project. A room is a scope of kind
`room`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sandbay.domain.ids import ProjectId
from sandbay.domain.reference import Malformed

DEEPEST = 16
"""How many scopes a path has at most."""

_KIND = re.compile(r"[a-z][a-z0-9-]{0,31}")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,126}")
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class ScopeName:
    """`kind:ref` in its two parts."""

    kind: str
    ref: str

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.kind}:{self.ref}"


def parse_scope(text: str) -> ScopeName | Malformed:
    """Read `kind:ref`. Never a path, an option or a URL: there is no slash, and neither part begins with a sign."""
    kind, colon, ref = text.partition(":")
    if not colon:
        return Malformed("a scope is kind:ref, such as team:growth")
    if not _KIND.fullmatch(kind):
        return Malformed("a scope's kind has lower-case letters, digits and -, at most 32, and starts with a letter")
    if not _REF.fullmatch(ref):
        return Malformed("a scope's ref has letters, digits and . _ @ -, at most 127, and starts with no sign")
    return ScopeName(kind, ref)


def is_agent_name(text: str) -> bool:
    """Whether the text may name an agent. Agents are not registered: a name means one within its project."""
    return _AGENT.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Scope:
    """A registered row. `name` is `kind:ref` and unique in the installation; `project` None is for every project."""

    name: str
    created_at: datetime
    parent: str | None = None
    project: ProjectId | None = None
    revision: int = 1


Lineage = tuple[Scope, ...]
"""A scope and its parents, narrowest first."""


def lineage_of(name: str, rows: Mapping[str, Scope]) -> Lineage:
    """The scope and its parents, narrowest first; empty when there is no such row. Ends on any rows, cycles too."""
    return tuple(_upwards(name, rows))


def _upwards(name: str | None, rows: Mapping[str, Scope]) -> Iterator[Scope]:
    seen: set[str] = set()
    while name is not None and name in rows and name not in seen:
        seen.add(name)
        yield rows[name]
        name = rows[name].parent


def parent_fault(scope: Scope, above: Lineage) -> str | None:
    """Why this row may not be written below these, in one plain sentence; None when it may.

    `above`: the lineage of its parent as it stands, empty when the scope has none.
    """
    if scope.parent is None:
        return None
    if not above:
        return f"there is no scope {scope.parent}"
    if scope.name in (it.name for it in above):
        return f"{scope.name} would stand below itself"
    owner = above[0].project
    if owner is not None and scope.project != owner:
        return f"{scope.parent} belongs to a project, so what stands below it does, too"
    if len(above) >= DEEPEST:
        return f"a path has at most {DEEPEST} scopes"
    return None


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a key is held to: a scope with all below it, and some agents. None: not held in that respect."""

    scope: str | None = None
    agents: frozenset[str] | None = None

    def holds(self, lineage: Sequence[Scope]) -> bool:
        """Whether the scope of this lineage stands within."""
        return self.scope is None or self.scope in (it.name for it in lineage)


UNCONFINED = Confinement()
