"""./dev mutants: plant each fault of tests/flow/mutants.py in a copy of the repository; the tests have to notice.

Starts only from a green baseline: where the tests fail anyway, every fault would look caught.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tests.flow.mutants import MUTANTS, Mutant
from tools.machine import PYTHON, ROOT, say

TESTS = ("tests/flow", "tests/domain")
_COPIED = ("src", *TESTS, "tests/fakes", "tests/support", "tests/fixtures/references.json", "pyproject.toml")
_SLOWEST = 600
"""Seconds until a run counts as hung."""

_FAILED = 1
"""What pytest ends with when tests ran and failed. Anything else means that they did not run."""


def main(arguments: Sequence[str]) -> int:
    """Return 0 when every fault was caught, 1 when one survived, 2 when nothing can be said."""
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="TEXT", help="plant only faults whose file or name holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    options = parser.parse_args(arguments)
    named = [m for m in MUTANTS if not options.only or any(text in f"{m.file}: {m.what}" for text in options.only)]
    with tempfile.TemporaryDirectory(prefix="sandbay-mutants-") as folder:
        baseline = pathlib.Path(folder) / "baseline"
        copy(ROOT, baseline)
        done = _pytest(baseline, *TESTS)
        if done is None or done.returncode != 0:
            say((done.stdout if done else "they hang").strip())
            say("The tests fail before anything is planted: nothing can be said.")
            return 2
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            verdicts = pool.map(lambda at: _judge(baseline, pathlib.Path(folder) / str(at[0]), at[1]), enumerate(named))
            caught = [_report(mutant, *verdict) for mutant, verdict in zip(named, verdicts, strict=True)]
    say(f"{sum(caught)} of {len(named)} faults caught.")
    return 0 if all(caught) else 1


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """All that the tests of `TESTS` need, and nothing that only others need."""
    for name in _COPIED:
        here, there = source / name, target / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(here, there)


def _pytest(folder: pathlib.Path, *tests: str | pathlib.Path) -> subprocess.CompletedProcess[str] | None:
    """Run the tests of a copy up to the first failure; None when they hang.

    Without bytecode: a planted text of the same length within the same second would not be noticed.
    """
    # `test_mutants` fails by design in a copy with a planted fault.
    options = ("-x", "--quiet", "--ignore", "tests/flow/test_mutants.py")
    command = [str(PYTHON), "-B", "-m", "pytest", *options, *map(str, tests)]
    try:
        return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False, timeout=_SLOWEST)
    except subprocess.TimeoutExpired:
        return None


def _nearest(folder: pathlib.Path, mutant: Mutant) -> list[pathlib.Path]:
    """The tests that are about this file: most faults are caught there, in seconds."""
    package, module = mutant.file.removesuffix(".py").split("/")[:2]  # a step that is a package has one name
    return sorted((folder / "tests" / package).glob(f"test_{module}*.py"))


def _judge(baseline: pathlib.Path, folder: pathlib.Path, mutant: Mutant) -> tuple[bool, str]:
    """Whether a fault was caught, and by what."""
    copy(baseline, folder)
    file = folder / "src" / "sandbay" / mutant.file
    source = file.read_text()
    if source.count(mutant.old) != 1:
        return False, "the text to change does not stand there once"
    file.write_text(source.replace(mutant.old, mutant.new))
    done = _pytest(folder, *_nearest(folder, mutant))
    if done is not None and done.returncode == 0:
        done = _pytest(folder, *TESTS)
    shutil.rmtree(folder)
    if done is None:
        return True, "the tests hang"
    if done.returncode == 0:
        return False, "SURVIVED"
    if done.returncode != _FAILED:
        return False, f"the tests did not run:\n{done.stdout}{done.stderr}"
    first = re.search(r"^FAILED (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return True, first[1] if first else "?"


def _report(mutant: Mutant, caught: bool, by: str) -> bool:  # noqa: FBT001
    say(f"{'caught' if caught else 'NOT CAUGHT'}  {mutant.file}: {mutant.what}  ({by})")
    return caught


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
