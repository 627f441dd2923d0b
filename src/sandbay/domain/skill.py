"""Skills and plugins: folders that come whole, and say of themselves what they are.

A skill's `SKILL.md` begins with front matter (YAML between two lines `---`): `name`, `description`, and `requires`,
what its instructions need of the image. A plugin's `plugin.json` has a `name`. Other members are the reader's
business: we keep the folder as it came.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import yaml

from sandbay.domain.inline import InlineFile, Unfit, folder_fault
from sandbay.domain.requirement import NoRequirement, parse_requirement

SKILLS = 50
PLUGINS = 20
"""How many of each one Template has at most."""

SKILL_FILE = "SKILL.md"
PLUGIN_FILE = "plugin.json"
_FRONT_BYTES = 16 * 1024
_MANIFEST_BYTES = 256 * 1024
_DESCRIPTION = 1024
_REQUIRES = 50
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Skill:
    """`requires` as texts, each of which is a requirement."""

    name: str
    description: str
    requires: tuple[str, ...]
    files: tuple[InlineFile, ...]


@dataclass(frozen=True)
class Plugin:
    """A bundle with its manifest among its files."""

    name: str
    files: tuple[InlineFile, ...]


def read_skill(files: Sequence[InlineFile]) -> Skill | Unfit:
    """A skill from its folder."""
    text = _the_file(files, SKILL_FILE)
    if isinstance(text, Unfit):
        return text
    front = _front_matter(text)
    if isinstance(front, Unfit):
        return front
    name, description, requires = (front.get(key) or None for key in ("name", "description", "requires"))
    if not _is_name(name):
        return _unlike(SKILL_FILE, "name of lower-case letters, digits and -, at most 63")
    if not isinstance(description, str) or len(description) > _DESCRIPTION or "\0" in description:
        return _unlike(SKILL_FILE, f"description of at most {_DESCRIPTION} characters")
    if not _are_texts(requires or []):
        return _unlike(SKILL_FILE, f'requires that is a list of texts such as "node>=20", at most {_REQUIRES}')
    for text in requires or ():
        parsed = parse_requirement(text)
        if isinstance(parsed, NoRequirement):
            return Unfit(f"{SKILL_FILE}: {parsed.why}", ("files",))
    return Skill(name, description, tuple(requires or ()), tuple(files))


def read_plugin(files: Sequence[InlineFile]) -> Plugin | Unfit:
    """A plugin from its folder."""
    text = _the_file(files, PLUGIN_FILE)
    if isinstance(text, Unfit):
        return text
    try:
        manifest = json.loads(text) if len(text) <= _MANIFEST_BYTES else None
    except (ValueError, RecursionError):
        manifest = None
    if manifest is None:
        return Unfit(f"{PLUGIN_FILE} is no JSON of at most {_MANIFEST_BYTES} bytes", ("files",))
    name = manifest.get("name") if isinstance(manifest, dict) else None
    if not _is_name(name):
        return _unlike(PLUGIN_FILE, "name of lower-case letters, digits and -, at most 63")
    return Plugin(name, tuple(files))


def _the_file(files: Sequence[InlineFile], name: str) -> str | Unfit:
    fault = folder_fault(files)
    if fault is not None:
        return Unfit(fault.why, ("files", *fault.at))
    found = next((file for file in files if file.path == name), None)
    if found is None:
        return Unfit(f"its files have no {name}", ("files",))
    try:
        return found.data.decode()
    except UnicodeDecodeError:
        return Unfit(f"{name} is not UTF-8", ("files",))


def _unlike(file: str, wanted: str) -> Unfit:
    return Unfit(f"{file} has no {wanted}", ("files",))


def _is_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and len(value) <= _REQUIRES and all(isinstance(item, str) for item in value)


class _Scalars(yaml.BaseLoader):
    """Texts, lists and maps only, and no aliases: a few bytes of those can stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read here")
        return super().compose_node(parent, index)


def _front_matter(text: str) -> dict[str, Any] | Unfit:
    found = _FRONT.match(text[:_FRONT_BYTES])
    if found is None:
        return Unfit(f"{SKILL_FILE} does not begin with front matter between two lines --- within 16 KiB", ("files",))
    try:
        front = yaml.load(found[1], _Scalars)  # noqa: S506 - a loader that makes nothing but texts, lists and maps
    except (yaml.YAMLError, ValueError, RecursionError):
        front = None
    return front if isinstance(front, dict) else Unfit(f"the front matter of {SKILL_FILE} is no YAML map", ("files",))
