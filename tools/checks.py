"""./dev check: everything that judges the code without running it, one line per check."""

import concurrent.futures
import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Sequence

from tools import hosts, native, sizes
from tools.machine import PYTHON, ROOT, VENV, CannotContinueError, say

# What a check found wrong; nothing when all is well.
Problems = Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One way to judge the code."""

    name: str
    judge: Callable[[], Problems]


def _program(*command: str | os.PathLike[str]) -> Callable[[], Problems]:
    """Return the check that a program ends with 0; what it prints otherwise is the problem."""

    def judge() -> Problems:
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
        return [] if done.returncode == 0 else [(done.stdout + done.stderr).strip()]

    return judge


_BIN = VENV / "bin"
_OPENAPI = ROOT / "tools" / "openapi.py"
_CHECKS = [
    Check("mypy", _program(_BIN / "mypy", "--no-error-summary")),
    Check("ruff", _program(_BIN / "ruff", "check", "--quiet")),
    Check("format", _program(_BIN / "ruff", "format", "--check", "--quiet")),
    Check("imports", _program(_BIN / "lint-imports", "--no-logo", "--cache-dir", ".cache/import-linter")),
    Check("rules", _program(_BIN / "ast-grep", "scan", "--error")),
    Check("rule-tests", _program(_BIN / "ast-grep", "test", "--skip-snapshot-tests")),
    Check("hosts", hosts.problems),
    Check("sizes", sizes.problems),
    Check("native", native.problems),
    Check("openapi", _program(PYTHON, _OPENAPI, "--check")),
    Check("manual", _program(PYTHON, "-m", "tools.manual", "--check")),
    Check("sdk", _program(PYTHON, "-m", "tools.sdk", "--check")),
]


def names() -> list[str]:
    """Return the names of all checks."""
    return [check.name for check in _CHECKS]


def check(only: Sequence[str]) -> int:
    """Run all checks or the named ones; 0 when every one passed, else 1."""
    unknown = sorted(set(only) - set(names()))
    if unknown:
        raise CannotContinueError(f"no check is called {', '.join(unknown)}; there are {', '.join(names())}.")
    chosen = [check for check in _CHECKS if not only or check.name in only]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        passed = [_report(*outcome) for outcome in pool.map(_timed, chosen)]
    return 0 if all(passed) else 1


def _timed(check: Check) -> tuple[Check, Problems, float]:
    start = time.monotonic()
    return check, check.judge(), time.monotonic() - start


def _report(check: Check, problems: Problems, seconds: float) -> bool:
    say(f"{check.name:<10}  {'FAILED' if problems else 'ok':<6}  {seconds:4.1f} s")
    for problem in problems:
        say(problem)
    return not problems
