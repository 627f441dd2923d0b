"""The Environment Template: a project's reusable preparation of a Session.

A Session keeps what became of it at admission (`FrozenTemplate`) for its whole life: initialisation reads that and
nothing else, so that editing or deleting a Template alters no Session.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.declaration import Network
from sandbay.domain.ids import ProjectId, TemplateId
from sandbay.domain.inline import InlineFile, Unfit, bytes_fault, folder_fault
from sandbay.domain.life import Life
from sandbay.domain.package import Packages
from sandbay.domain.skill import Plugin, Skill

SETUP_COMMANDS = 50
OWN_FOLDER = ".sandbay"
"""Below the workspace: where skills and plugins are laid out."""

SKILLS_FOLDER = f"{OWN_FOLDER}/skills"
PLUGINS_FOLDER = f"{OWN_FOLDER}/plugins"


@dataclass(frozen=True, slots=True)
class SetupCommand:
    """One program call, or one line for the image's /bin/sh. Exactly one of the two is there."""

    argv: tuple[str, ...] | None = None
    shell: str | None = None


@dataclass(frozen=True)
class Preparation:
    """What a Session is prepared with. None is silent: another level, or the default, says it."""

    runtime_image_id: str | None = None
    platform: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict)
    files: tuple[InlineFile, ...] = ()
    packages: Packages = field(default_factory=Packages)
    skills: tuple[Skill, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    setup_commands: tuple[SetupCommand, ...] = ()
    network: Network | None = None
    setup_network: Network | None = None
    requires: tuple[str, ...] = ()
    idle_timeout: int | None = None
    max_life: int | None = None

    def changed(self, said: Mapping[str, Any]) -> "Preparation":
        """With these members replaced; of packages only the tools that are said."""
        packages = said.get("packages")
        merged = {} if packages is None else {"packages": replace(self.packages, **packages)}
        return replace(self, **{**said, **merged})

    @property
    def life(self) -> Life:
        """How long its Sessions may live."""
        return Life(self.idle_timeout, self.max_life)

    @property
    def outline(self) -> "Preparation":
        """The same without the bytes of files: what lists show."""
        return replace(
            self,
            files=_outlines(self.files),
            skills=tuple(replace(skill, files=_outlines(skill.files)) for skill in self.skills),
            plugins=tuple(replace(plugin, files=_outlines(plugin.files)) for plugin in self.plugins),
        )

    @property
    def document(self) -> bytes:
        """Canonical JSON of all fields."""
        return canonical(self)


@dataclass(frozen=True)
class Template:
    """A name of its project's, and what it prepares."""

    id: TemplateId
    project: ProjectId
    name: str
    created_at: datetime
    updated_at: datetime
    content: Preparation
    revision: int = 1


@dataclass(frozen=True, slots=True)
class TemplateMark:
    """Which Template, as it was called and stood when it was read."""

    id: TemplateId
    name: str
    revision: int


@dataclass(frozen=True)
class FrozenTemplate:
    """What one Session is prepared with, resolved: nothing in it is silent. Written once, named by its digest."""

    template: TemplateMark | None
    env: Mapping[str, str]
    files: tuple[InlineFile, ...]
    packages: Packages
    skills: tuple[Skill, ...]
    plugins: tuple[Plugin, ...]
    setup_commands: tuple[SetupCommand, ...]
    network: Network
    setup_network: Network
    secret_env: Mapping[str, str] = field(default_factory=dict)

    @property
    def prepares(self) -> bool:
        """Whether there is anything to keep: a Template, or files that came with the request."""
        return self.template is not None or bool(self.files)

    @cached_property
    def document(self) -> bytes:
        """Canonical JSON of all fields."""
        return canonical(self)

    @cached_property
    def document_digest(self) -> str:
        """`sha256:…` of the document; what refers to this record carries it."""
        return sha256(self.document)


def preparation_fault(content: Preparation) -> Unfit | None:
    """Why this cannot be one Template's content, or None. Its parts have been looked at already."""
    return (
        _files_fault(content.files)
        or _named_fault("skills", [skill.name for skill in content.skills])
        or _named_fault("plugins", [plugin.name for plugin in content.plugins])
        or _at("files", bytes_fault(_all_files(content)))
    )


def _files_fault(files: tuple[InlineFile, ...]) -> Unfit | None:
    own = next((n for n, file in enumerate(files) if file.path.split("/")[0] == OWN_FOLDER), None)
    if own is not None:
        return Unfit(f"{OWN_FOLDER} is where skills and plugins are laid out; nothing else goes there", ("files", own))
    return _at("files", folder_fault(files))


def _named_fault(member: str, names: list[str]) -> Unfit | None:
    twice = next((n for n, name in enumerate(names) if name in names[:n]), None)
    return None if twice is None else Unfit(f"two of them are called {names[twice]}", (member, twice))


def _at(member: str, fault: Unfit | None) -> Unfit | None:
    return None if fault is None else Unfit(fault.why, (member, *fault.at))


def _all_files(content: Preparation) -> Iterable[InlineFile]:
    yield from content.files
    for skill in content.skills:
        yield from skill.files
    for plugin in content.plugins:
        yield from plugin.files


def _outlines(files: tuple[InlineFile, ...]) -> tuple[InlineFile, ...]:
    return tuple(file.outline for file in files)
