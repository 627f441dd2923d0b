"""The subcommands of ./dev. Each sets up first what it needs, so each may be the first one."""

import argparse
import os
from collections.abc import Callable, Sequence

from tools import checks, locks
from tools.machine import PYTHON, ROOT, CannotContinueError, as_root, is_root, run, say
from tools.setup import BENCH_LIST, install_missing, setup


def main(arguments: Sequence[str]) -> int:
    """Run one subcommand and return its exit code."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command not in _PASS_ON:
        parser.error(f"{options.command} does not take {' '.join(rest)}")
    try:
        return _COMMANDS[options.command](options, rest)
    except CannotContinueError as problem:
        say(f"dev: {problem}")
        return 1
    except KeyboardInterrupt:
        return 130


def _setup(_options: argparse.Namespace, _rest: list[str]) -> int:
    setup(quiet=False)
    return 0


def _quickstart(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run(as_root([PYTHON, "-m", "tools.quickstart", *rest], why="Running sandboxes"))


def _test(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    command: list[str] = [str(PYTHON), "-m", "pytest", *_TESTS.get(tuple(rest), rest)]
    code = run(command if is_root() else as_root([*command, "-p", "no:cacheprovider"], why="Testing real sandboxes"))
    if not rest:
        say("Left out: the tests marked slow. ./dev test --all runs them, too, as .ci/run does.")
    return code


# All of them take every core and one worker more, since many wait for processes or for time to pass; a part is quicker
# without workers to start, and easier to debug.
_WORKERS = str((os.cpu_count() or 1) + 1)
_WHOLE = ["-n", _WORKERS, "--dist", "loadfile", "--no-loadscope-reorder"]
_TESTS: dict[tuple[str, ...], list[str]] = {
    (): [*_WHOLE, "-m", "not slow"],
    ("--all",): [*_WHOLE, "--hypothesis-profile", "default"],
}


def _bench(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    install_missing(BENCH_LIST)
    return run(as_root([PYTHON, "-m", "bench", *rest], why="Measuring real sandboxes"))


def _check(options: argparse.Namespace, _rest: list[str]) -> int:
    setup(quiet=True)
    return checks.check(options.only)


def _lock(options: argparse.Namespace, _rest: list[str]) -> int:
    setup(quiet=True)
    locks.lock(upgrade=options.upgrade)
    setup(quiet=True)
    return 0


def _openapi(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run([PYTHON, ROOT / "tools" / "openapi.py", *rest])


def _manual(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run([PYTHON, "-m", "tools.manual", *rest])


def _sdk(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run([PYTHON, "-m", "tools.sdk", *rest])


def _mutants(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run([PYTHON, "-m", "tools.mutants", *rest])


def _fuzz(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run([PYTHON, "-m", "tools.fuzz", *rest])


def _native(_options: argparse.Namespace, rest: list[str]) -> int:
    setup(quiet=True)
    return run([PYTHON, "-m", "tools.native", *rest])


_COMMANDS: dict[str, Callable[[argparse.Namespace, list[str]], int]] = {
    "setup": _setup,
    "quickstart": _quickstart,
    "test": _test,
    "bench": _bench,
    "check": _check,
    "lock": _lock,
    "openapi": _openapi,
    "manual": _manual,
    "sdk": _sdk,
    "mutants": _mutants,
    "fuzz": _fuzz,
    "native": _native,
}
# These hand what they do not know to the program that they call.
_PASS_ON = ("quickstart", "test", "bench", "openapi", "manual", "sdk", "mutants", "fuzz", "native")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev",
        description="The front door of this repository. Every command first installs what is missing.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=18),
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    commands.add_parser("setup", help="install system programs and Python packages, as far as missing")
    quickstart = "the tour: four images at work in one installation (--exit: then stop it all)"
    commands.add_parser("quickstart", help=quickstart, add_help=False)
    test = "run the tests, minutes (--all: the slow ones, too); takes pytest's arguments"
    commands.add_parser("test", help=test, add_help=False)
    bench = "measure, each figure against its baseline in the same run; takes minutes (--list: what there is)"
    commands.add_parser("bench", help=bench, add_help=False)
    check = commands.add_parser("check", help="run everything that judges the code without running it")
    check.add_argument("only", nargs="*", metavar="NAME", help="only these: " + ", ".join(checks.names()))
    lock = commands.add_parser("lock", help="remake requirements/*.txt from pyproject.toml")
    lock.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    manual = "write the reference in docs/*/sandbox-deployment.md from openapi/ (--check: only compare)"
    commands.add_parser("manual", help=manual, add_help=False)
    commands.add_parser("openapi", help="write openapi/ from the code (--check: only compare)", add_help=False)
    twin = "make the synchronous client from the asynchronous source (--check: only compare)"
    commands.add_parser("sdk", help=twin, add_help=False)
    native = "build native/spawner.c for each kind of processor (--check: only compare)"
    commands.add_parser("native", help=native, add_help=False)
    mutants = "plant faults in the decisions and see whether the tests notice; takes minutes"
    commands.add_parser("mutants", help=mutants, add_help=False)
    fuzz = "look for bytes that break the readers of images ([TARGET …] [--seconds N], 60 s each)"
    commands.add_parser("fuzz", help=fuzz, add_help=False)
    return parser
