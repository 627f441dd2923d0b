"""Where things are on this machine, and how to run a program as this user or as root."""

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"

# Debian keeps runtimes in sbin, which is not on every user's PATH.
SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))


# One part of a command line.
Part = str | os.PathLike[str]


class CannotContinueError(Exception):
    """Something a person has to do first. The message is the one line they are shown."""


def say(line: str) -> None:
    """Tell the person at the terminal what is going on, ahead of the output of programs."""
    print(line, flush=True)


def run(command: Sequence[Part], *, env: Mapping[str, str] | None = None) -> int:
    """Run a program in the repository's root with our input and output; return its exit code."""
    return subprocess.run(command, cwd=ROOT, env=_environment(env), check=False).returncode


def must_run(command: Sequence[Part], *, doing: str, env: Mapping[str, str] | None = None) -> None:
    """Run a program that has to succeed; `doing` completes the sentence "… did not work"."""
    code = run(command, env=env)
    if code != 0:
        raise CannotContinueError(f"{doing} did not work (exit code {code}, see above).")


def is_root() -> bool:
    """Tell whether this process may do everything."""
    return os.geteuid() == 0


def as_root(command: Sequence[Part], *, why: str) -> list[str]:
    """Return the command that runs `command` as root, through sudo when we are not root.

    Raises `CannotContinueError` when there is neither root nor sudo.
    """
    plain = [os.fspath(part) for part in command]
    if is_root():
        return plain
    if shutil.which("sudo", path=SYSTEM_PATH) is None:
        raise CannotContinueError(f"{why} needs root, and there is no sudo here: run this command as root.")
    say(f"{why} needs root: using sudo.")
    # Root must not leave bytecode in a tree that belongs to somebody else.
    return ["sudo", "--", "env", "PYTHONDONTWRITEBYTECODE=1", f"PATH={SYSTEM_PATH}", *plain]


def suitable_python() -> str:
    """Return the interpreter to make `.venv` from.

    The system's own is preferred: one below a home directory of mode 0700 cannot be executed by the
    unprivileged children that unpack images.
    """
    system = "/usr/bin/python3"
    probe = "import sys; sys.exit(sys.version_info < (3, 11))"
    if pathlib.Path(system).exists() and subprocess.run([system, "-c", probe], check=False).returncode == 0:
        return system
    return sys.executable


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, "PATH": SYSTEM_PATH, **(extra or {})}
