"""The contract of an image: which tools it promises, and what a real sandbox said when it was asked.

A contract is tool → the command that prints its version. A check starts a sandbox from one variant and writes down
what it saw: `ContractReport`. What an image prints is hostile: it is cut, and only its printable part is kept.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from packaging.version import Version

from sandbay.domain.ids import ReleaseId
from sandbay.domain.release import Fault, Variant

MAX_TOOLS = 64
_LINE = 200


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """How long one tool may take, and all of a check (what is left has timed out); how much a tool may print."""

    tool_seconds: float = 20.0
    seconds: float = 180.0
    output_bytes: int = 64 * 1024


_NUMBERS = r"\d{1,9}(?:\.\d{1,9}){%s}"
_PRE = r"(?:[-_.]?(?:[abc][-_.]?\d{1,9}|(?:rc|alpha|beta|preview|pre|dev)[-_.]?\d{0,9})(?![A-Za-z0-9]))?"
_VERSIONS = (
    re.compile(rf"(?<![\d.]){_NUMBERS % '1,15'}(?!\.?\d){_PRE}", re.ASCII | re.IGNORECASE),
    re.compile(rf"(?<![\w.])v?({_NUMBERS % '0'})(?![\w.])", re.ASCII | re.IGNORECASE),
)
"""With dots wherever it stands (`go1.22`, `w3m/0.5.3`); without, only as a word of its own (`less 590`). A bare letter
at the end is no pre-release (`tmux 3.3a`, `OpenSSL 1.1.1w`)."""


class Violation(StrEnum):
    """What is wrong with one tool."""

    NOT_FOUND = "not_found"
    NOT_EXECUTABLE = "not_executable"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    TOO_MUCH_OUTPUT = "too_much_output"
    NO_VERSION = "no_version"


@dataclass(frozen=True, slots=True)
class ToolReport:
    """What one tool's command did. `path`: the program on PATH; `printed`: the line that says the version.

    `exit` and `path` are None where it did not come to that.
    """

    command: str
    path: str | None = None
    exit: int | None = None
    printed: str = ""
    version: str | None = None
    violation: Violation | None = None


@dataclass(frozen=True)
class ContractReport:
    """What a sandbox of one variant is like. `fault`: why none boots as the config says; then the rest is empty."""

    boots: bool
    shell: bool = False
    user: str = ""
    uid: int = 0
    gid: int = 0
    home: str = ""
    workdir: str = ""
    tools: Mapping[str, ToolReport] = field(default_factory=dict)
    fault: Fault | None = None

    @property
    def kept(self) -> bool:
        """Whether the image is what its contract says."""
        return self.boots and not self.violations

    @property
    def violations(self) -> Mapping[str, Violation]:
        """Tool → what is wrong with it."""
        return {name: it.violation for name, it in self.tools.items() if it.violation is not None}

    @property
    def versions(self) -> Mapping[str, str]:
        """The verified tools: name → version."""
        return {name: it.version for name, it in self.tools.items() if it.version and it.violation is None}


@dataclass(frozen=True)
class Contract:
    """What a release promises: tool → command. `checks` counts the checks that were asked for."""

    tools: Mapping[str, str] = field(default_factory=dict)
    checks: int = 0


@dataclass(frozen=True)
class Checked:
    """A report, of which check, and when."""

    number: int
    at: datetime
    report: ContractReport


@dataclass(frozen=True)
class CheckOrder:
    """What a node is told to check. `number` counts the checks of the release, so that each is answered once."""

    release: ReleaseId
    number: int
    variant: Variant
    tools: Mapping[str, str]


def argv_of_tool(command: str) -> tuple[str, ...]:
    """The arguments of a tool's command; no shell reads it. Raises ValueError on what is no command."""
    argv = tuple(shlex.split(command))
    if not argv or not argv[0]:
        raise ValueError("there is no program in it")
    return argv


@dataclass(frozen=True, slots=True)
class Heard:
    """How a tool's command ended, and what it printed until then, as far as it was listened to."""

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    cut: bool = False


def judge_tool(command: str, path: str | None, heard: Heard) -> ToolReport:
    """What a command's end means for its tool. Standard output speaks first, standard error where that is silent."""
    spoken = heard.stdout if heard.stdout.strip() else heard.stderr
    line, version = _version(spoken.decode("utf-8", "replace"))
    violation = _violation(heard, version)
    own_end = None if heard.timed_out or heard.cut else heard.code
    return ToolReport(command, path, own_end, line, version, violation)


_NOT_EXECUTABLE, _NOT_FOUND = 126, 127


def _violation(heard: Heard, version: str | None) -> Violation | None:
    if heard.cut:
        return Violation.TOO_MUCH_OUTPUT
    if heard.timed_out:
        return Violation.TIMED_OUT
    if heard.code:
        ends = {_NOT_FOUND: Violation.NOT_FOUND, _NOT_EXECUTABLE: Violation.NOT_EXECUTABLE}
        return ends.get(heard.code, Violation.FAILED)
    return Violation.NO_VERSION if version is None else None


def _version(text: str) -> tuple[str, str | None]:
    """The first line with a version and that version as PEP 440 writes it; else the first line that says anything."""
    lines = [line for line in map(_printable, text.splitlines()) if line]
    for pattern in _VERSIONS:
        for line in lines:
            found = pattern.search(line)
            if found:
                return line, str(Version(found[pattern.groups]))
    return (lines[0] if lines else ""), None


def _printable(line: str) -> str:
    """Escape sequences of a hostile image must not reach anybody's terminal."""
    return "".join(c for c in line[: 4 * _LINE] if c.isprintable()).strip()[:_LINE]
