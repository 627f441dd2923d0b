"""Calls of the runtime's command line, each with a time limit. What it says goes to a log file that we read back."""

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LOG_TAIL = 4096


@dataclass(frozen=True, slots=True)
class Spoken:
    """How a call ended: its exit code, or None when its time was over, and its last complaint."""

    code: int | None
    complaint: str = ""

    @property
    def ok(self) -> bool:
        """Whether it did what it was asked."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime program and the folder in which it keeps its own state."""

    program: str
    state: Path

    def prefix(self, log: Path) -> list[str]:
        """Program and global options."""
        return [self.program, "--root", str(self.state), "--log", str(log), "--log-format", "json"]

    def forget(self, name: str) -> None:
        """Drop the runtime's record of a sandbox that has ended. One that it does not know is fine.

        It is a folder in a folder of ours. Beyond that the runtime's own `delete` would end processes and remove
        groups, which is done, for the price of a fifth of a start.
        """
        with suppress(FileNotFoundError):
            shutil.rmtree(self.state / name)

    def version(self, timeout: float) -> str | None:
        """What the program says of itself, or None when it cannot be run."""
        try:
            done = subprocess.run([self.program, "--version"], capture_output=True, timeout=timeout, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def call(argv: Sequence[str], log: Path, timeout: float) -> Spoken:
    """Run to the end or the time limit, with nothing on its standard streams."""
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(argv, stdin=nothing, stdout=nothing, stderr=nothing, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Spoken(None, "it took too long")
    except OSError as error:
        return Spoken(127, error.strerror or "it cannot be run")
    return Spoken(done.returncode, complaint(log) if done.returncode else "")


def complaint(log: Path) -> str:
    """The last message in a runtime's JSON log."""
    try:
        lines = log.read_text(errors="replace")[-_LOG_TAIL:].splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            return str(json.loads(line)["msg"])
        except (ValueError, KeyError, TypeError):
            continue
    return ""


def open_files() -> int:
    """This process's hard limit of open files: without CAP_SYS_RESOURCE not even root may give more."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard
