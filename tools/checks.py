"""./dev check: everything that judges the code without running it, one line per check."""

import dataclasses
import subprocess
import time
from collections.abc import Sequence

from tools.machine import ROOT, VENV, CannotContinueError, say

_BIN = VENV / "bin"


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """A program that ends with 0 when all is well."""

    name: str
    command: tuple[str, ...]


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(_BIN / name), *arguments)


_CHECKS = (
    Check("ruff", _tool("ruff", "check", "--quiet")),
    Check("format", _tool("ruff", "format", "--check", "--quiet")),
    Check("mypy", _tool("mypy", "--no-error-summary")),
    Check("imports", _tool("lint-imports", "--cache-dir", ".cache/import-linter")),
)


def names() -> list[str]:
    """Return the names of all checks."""
    return [check.name for check in _CHECKS]


def check(only: Sequence[str]) -> int:
    """Run all checks or the named ones; 0 when every one passed, else 1."""
    unknown = set(only) - set(names())
    if unknown:
        raise CannotContinueError(f"no check is called {', '.join(sorted(unknown))}; there are: {', '.join(names())}.")
    chosen = [check for check in _CHECKS if not only or check.name in only]
    passed = [_passes(check) for check in chosen]
    return 0 if all(passed) else 1


def _passes(check: Check) -> bool:
    start = time.monotonic()
    done = subprocess.run(check.command, cwd=ROOT, text=True, capture_output=True, check=False)
    seconds = time.monotonic() - start
    say(f"{check.name:<12} {'ok' if done.returncode == 0 else 'FAILED'}  ({seconds:.1f} s)")
    if done.returncode != 0:
        say((done.stdout + done.stderr).rstrip())
    return done.returncode == 0
