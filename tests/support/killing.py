"""Kill -9 at every step of an act: a child does it and dies before its n-th step, for every n until it lives.

    for killed in at_every_step(lambda: store.remove(key), scratch):
        …   # what is there after a restart; `killed` names the step, and is None when the act has come to its end

A step is a change of a name below the folder, a file opened there to be written, a sync, or a call of what the test
names besides. The child is a fork of this
process: it has what was opened before, and what it does in threads and programs of its own is killed with it.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sandbay.engine import linux

_NAMES = {"os.rename": "rename", "os.mkdir": "mkdir", "os.rmdir": "rmdir", "os.remove": "remove"}
_WRITING = os.O_WRONLY | os.O_RDWR
_MOST = 200

Place = tuple[Any, str]
"""Where a function stands, and its name there: a module or a class."""

_SYNCS: tuple[Place, ...] = ((os, "fsync"), (linux, "syncfs"))


def at_every_step(act: Callable[[], object], below: Path, calls: Sequence[Place] = ()) -> Iterator[str | None]:
    """Do the act up to each of its steps; told is the step that was not done any more."""
    for number in range(1, _MOST):
        step = _die_before(number, act, below, calls)
        yield step
        if step is None:
            return
    raise AssertionError("it takes more steps than this knows")


def die_at(wanted: str, number: int, below: Path) -> None:
    """Kill this very process before the n-th step of this name that comes after a SIGUSR1."""
    left, armed = number, threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: armed.set())

    def step(name: str) -> None:
        nonlocal left
        left -= armed.is_set() and name == wanted
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch(step, below, _SYNCS)


def _die_before(number: int, act: Callable[[], object], below: Path, calls: Sequence[Place]) -> str | None:
    read, write = os.pipe()
    # A test's process is small, and a fork has the store open as it was; a program started anew takes a second.
    # ast-grep-ignore: no-fork
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _count(number, below, write, calls)
            act()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            os.write(write, f"!{error!r}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    assert not said.startswith("!"), said
    assert os.WIFSIGNALED(status) == bool(said)
    return said or None


def _count(number: int, below: Path, write: int, calls: Sequence[Place]) -> None:
    left = number

    def step(name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.write(write, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    _watch(step, below, (*_SYNCS, *calls))


def _watch(step: Callable[[str], None], below: Path, calls: Sequence[Place]) -> None:
    """Tell of each step before it is done."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if (event in _NAMES or writes) and isinstance(arguments[0], (str, bytes, os.PathLike)):
            path = Path(os.fsdecode(arguments[0]))
            if path.is_relative_to(below):
                inside = path.relative_to(below).parts or (".",)
                step(f"{_NAMES.get(event, 'write')} {inside[0]}")

    for where, name in calls:
        real = getattr(where, name)

        def called(*given: Any, real: Callable[..., Any] = real, name: str = name, **more: Any) -> Any:
            step(name)
            return real(*given, **more)

        setattr(where, name, called)
    sys.addaudithook(heard)
