"""Packages that a Template adds to its image: exact strings, as npm and pip take them, and nothing else they take.

    npm      typescript   @scope/tool@^1.2   ./packages/tool-1.0.0.tgz
    python   requests     rich[jupyter]>=13,<14   ./wheels/tool-1.0-py3-none-any.whl

Both tools also take options, URLs, repositories and aliases in the same place. Those are refused: what a Template
says must be what it looks like.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sandbay.domain.inline import Unfit, inner_path

PACKAGES = 100
"""Packages of one tool at most."""

_LONGEST = 512


class PackageTool(StrEnum):
    """Who installs. The image brings it."""

    NPM = "npm"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Packages:
    """What to install, in the order given."""

    npm: tuple[str, ...] = ()
    python: tuple[str, ...] = ()

    def of(self, tool: PackageTool) -> Sequence[str]:
        """What one tool installs."""
        return self.npm if tool is PackageTool.NPM else self.python

    def __bool__(self) -> bool:
        """Whether there is anything to install."""
        return bool(self.npm or self.python)


_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PYTHON_VERSION = r"[A-Za-z0-9.*+!_-]+"
_PYTHON_RULE = rf"(?:===|==|!=|<=|>=|~=|<|>) ?{_PYTHON_VERSION}"
_NPM_NAME = r"[a-z0-9][a-z0-9._~-]*"

_SHAPES: Mapping[PackageTool, re.Pattern[str]] = {
    PackageTool.NPM: re.compile(
        rf"(?:@[a-z0-9~][a-z0-9._~-]*/)?{_NPM_NAME}(?:@[A-Za-z0-9^~<>=*|][A-Za-z0-9^~<>=*|. +_-]*)?"
    ),
    PackageTool.PYTHON: re.compile(
        rf"{_PART}(?: ?\[ ?{_PART}(?: ?, ?{_PART})* ?\])?(?: ?{_PYTHON_RULE}(?: ?, ?{_PYTHON_RULE})*)?"
    ),
}
_ARCHIVES: Mapping[PackageTool, tuple[str, ...]] = {
    PackageTool.NPM: (".tgz", ".tar.gz"),
    PackageTool.PYTHON: (".whl", ".tar.gz", ".zip"),
}
_LOOKS: Mapping[PackageTool, str] = {
    PackageTool.NPM: "an npm package is name, name@version or a ./path.tgz in the workspace; no option, URL or alias",
    PackageTool.PYTHON: "a Python package is name, name[extra]>=version or a ./path.whl in the workspace; "
    "no option or URL",
}


def package_fault(tool: PackageTool, text: str) -> Unfit | None:
    """Why the tool shall not be given this, or None."""
    if len(text) > _LONGEST:
        return Unfit(f"a package has at most {_LONGEST} characters")
    if text.startswith(("./", "/")):
        fits = not isinstance(inner_path(text), Unfit) and text.endswith(_ARCHIVES[tool])
    else:
        fits = _SHAPES[tool].fullmatch(text) is not None
    return None if fits else Unfit(_LOOKS[tool])
