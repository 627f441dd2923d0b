"""What a Session needs of its image: a tool, and which versions of it will do.

    node>=20        codex>=1,<3        git

The specifiers are those of PEP 440. They are held against the versions that a contract check read from what the
tools of a release printed (`domain.contract`); what nobody has read is unknown, and unknown is not enough.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from sandbay.domain.trail import Level

ANY = "any"
"""How a requirement without specifiers is told."""

UNKNOWN = "unknown"
"""The version found where no tool of the release has been verified."""

TOOL_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9+])?"
"""A tool's name, e.g. `node`, `g++`, `python3.11`."""

_LONGEST = 256
_SHAPE = re.compile(rf"\s*({TOOL_NAME})\s*((?:[<>=!~].*)?)")


@dataclass(frozen=True)
class Requirement:
    """`tool` with every version that `specifiers` (PEP 440, empty for any) lets through."""

    tool: str
    specifiers: str = ""

    def __str__(self) -> str:
        """As it is written."""
        return self.tool + self.specifiers

    @property
    def wanted(self) -> str:
        """The specifiers, or `any`."""
        return self.specifiers or ANY

    def met_by(self, version: str) -> bool:
        """Whether this version will do. A pre-release counts: the image has it, whoever chose it."""
        try:
            return self._set.contains(Version(version), prereleases=True)
        except InvalidVersion:
            return False

    @cached_property
    def _set(self) -> SpecifierSet:
        return SpecifierSet(self.specifiers)


@dataclass(frozen=True, slots=True)
class NoRequirement:
    """The text is none; `why` is for whoever wrote it."""

    why: str


def parse_requirement(text: str) -> Requirement | NoRequirement:
    """Read `tool` or `tool` with specifiers. Nothing else of PEP 508 means anything here."""
    found = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return NoRequirement("a requirement is a tool's name and PEP 440 specifiers, such as node>=20 or git")
    tool, specifiers = found[1], "".join(found[2].split())
    try:
        SpecifierSet(specifiers)
    except InvalidSpecifier:
        return NoRequirement(f"{specifiers} is no list of PEP 440 specifiers, such as >=20 or ~=3.1,!=3.1.2")
    return Requirement(tool, specifiers)


@dataclass(frozen=True, slots=True)
class Required:
    """A requirement and where it stands: `field` of the request (level session) or of the Template `subject`."""

    requirement: Requirement
    level: Level = Level.SESSION
    field: str = "requires"
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that a release does not meet. `found`: a version, `unknown`, or None for no such tool."""

    required: Required
    found: str | None


Tools = Mapping[str, str]
"""Verified tools: name → version."""


def unmet(required: Iterable[Required], tools: Tools) -> tuple[Unmet, ...]:
    """What these tools do not meet, in the order in which it was asked for. Without any tool all is unknown."""
    return tuple(
        Unmet(it, tools.get(it.requirement.tool) if tools else UNKNOWN)
        for it in required
        if not _met(it.requirement, tools)
    )


def _met(requirement: Requirement, tools: Tools) -> bool:
    version = tools.get(requirement.tool)
    return version is not None and requirement.met_by(version)
