"""Programs in a running sandbox: each in a control group of its own, which is how its whole tree is ended.

`<execs>/<name>/` exists exactly as long as a call is in flight. A node that comes back after a crash therefore knows
which trees nobody waits for any more, and leaves those alone that a finished call left running on purpose.
"""

import contextlib
import json
import os
import secrets
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from signal import Signals
from typing import Self

from sandbay.adapters.providers.oci.cgroups import Cgroups, exec_command
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.runtime import Runtime, complaint
from sandbay.adapters.providers.oci.streams import Ended, Feeder, Guard, Pipe, Source, pump
from sandbay.adapters.providers.oci.terminal import Terminal
from sandbay.domain.command import TerminalSize
from sandbay.ports.provider import Emit, Exit, OnStart, Stream

KILLED = 137


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What an exec needs to know of its sandbox; `execs` is a private folder on a tmpfs."""

    name: str
    group: PurePosixPath
    execs: Path


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The runtime did not start the program, and why, in its own words."""

    complaint: str


@dataclass(frozen=True)
class Call:
    """One exec's input and output. Its default standard input is empty; `on_start` is told how to steer it."""

    emit: Emit
    stdin: Iterable[bytes] = ()
    timeout: float | None = None
    cancel: threading.Event | None = None
    terminal: TerminalSize | None = None
    on_start: OnStart | None = None


class Steer:
    """The port's `Steering` of one exec."""

    def __init__(self, groups: Groups, name: str, streams: "Pipes | Terminal") -> None:
        """`name` is the exec's group."""
        self._groups, self._name, self._streams = groups, name, streams

    def resize(self, size: TerminalSize) -> None:
        """Its terminal has this size now."""
        self._streams.resize(size)

    def signal(self, number: Signals) -> None:
        """Send it to the whole tree."""
        self._groups.send(number, self._name)


class Execs:
    """Starts programs through the runtime and the reaper."""

    def __init__(self, runtime: Runtime, cgroups: Cgroups, reaping: Reaping) -> None:
        """Shared by all sandboxes of a provider."""
        self._runtime = runtime
        self._cgroups = cgroups
        self._reaping = reaping

    def run(self, sandbox: Sandbox, document: Mapping[str, object], call: Call) -> Exit | NotStarted:
        """Run to the end. Raises `FileNotFoundError` when the sandbox is gone, and what `emit` raises."""
        name = f"e{secrets.token_hex(6)}"
        folder = sandbox.execs / name
        groups = Groups(self._cgroups, sandbox.group)
        folder.mkdir(mode=0o700)
        try:
            groups.make_exec(name)
            return self._run(sandbox, document, call, name)
        except BaseException:
            groups.kill(name)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._sweep(sandbox, groups)

    def abandon(self, sandbox: Sandbox) -> None:
        """End what an earlier node process had in flight."""
        groups = Groups(self._cgroups, sandbox.group)
        for folder in sandbox.execs.glob("e*"):
            groups.kill(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
        self._sweep(sandbox, groups)

    def _run(self, sandbox: Sandbox, document: Mapping[str, object], call: Call, name: str) -> Exit | NotStarted:
        groups = Groups(self._cgroups, sandbox.group)
        folder = sandbox.execs / name
        (folder / "process.json").write_text(json.dumps(document))
        with (
            _streams(folder, call) as streams,
            Guard(lambda: groups.strike(name), call.timeout, call.cancel) as guard,
            self._reaping.start(self._argv(sandbox, folder, streams), folder / "pid", streams.give()) as answers,
        ):
            streams.given()

            def begin() -> Sequence[Source]:
                # The document holds the environment, and has served.
                (folder / "process.json").unlink()
                # A kill that came before the program was in its group has missed it.
                if guard.fired:
                    groups.strike(name)
                sources = streams.begin()
                if call.on_start is not None:
                    call.on_start(Steer(groups, name, streams))
                return sources

            ended = pump(answers, call.emit, begin)
        return self._outcome(ended, guard, groups, folder)

    @staticmethod
    def _outcome(ended: Ended, guard: Guard, groups: Groups, folder: Path) -> Exit | NotStarted:
        if guard.fired:
            groups.kill(folder.name)
            return Exit(KILLED if guard.timed_out or ended.code is None else ended.code, timed_out=guard.timed_out)
        if ended.code is None:
            return NotStarted(complaint(folder / "log"))
        return Exit(ended.code)

    def _argv(self, sandbox: Sandbox, folder: Path, streams: "Pipes | Terminal") -> list[str]:
        files = ["--pid-file", str(folder / "pid"), "--process", str(folder / "process.json")]
        arguments = ["--detach", *files, *streams.arguments, sandbox.name]
        return exec_command(self._cgroups, sandbox.group, folder.name, self._runtime.prefix(folder / "log"), arguments)

    def _sweep(self, sandbox: Sandbox, groups: Groups) -> None:
        """Drop groups of finished execs that are empty by now."""
        with contextlib.suppress(FileNotFoundError):
            for group in list(groups.members.glob("e*")):
                if not (sandbox.execs / group.name).exists():
                    groups.drop_exec(group.name)


def _streams(folder: Path, call: Call) -> "Pipes | Terminal":
    return Pipes(call.stdin) if call.terminal is None else Terminal(folder, call.stdin, call.terminal)


class Pipes:
    """Standard streams of one program: its ends to give away, ours to keep until the block is left."""

    arguments: Sequence[str] = ()
    """For the runtime's exec."""

    def __init__(self, stdin: Iterable[bytes]) -> None:
        """Nothing is opened yet."""
        self._stdin = stdin
        self._feeder: Feeder | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self.stdout, self._stdout = _pipe(undo)
            self.stderr, self._stderr = _pipe(undo)
            if self._stdin == ():
                self._input = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
                self._feed = -1
            else:
                self._input, self._feed = os.pipe()
            undo.pop_all()
        return self

    def give(self) -> list[int]:
        """Descriptors of stdin, stdout, stderr for the program."""
        return [self._input, self._stdout, self._stderr]

    def given(self) -> None:
        """The program has its own copies now: close ours, and feed it."""
        self._close_given()
        if self._feed >= 0:
            self._feeder = Feeder(self._stdin, self._feed)
            self._feed = -1

    def begin(self) -> Sequence[Source]:
        """The program runs: what to read."""
        return [Pipe(self.stdout, Stream.STDOUT), Pipe(self.stderr, Stream.STDERR)]

    def resize(self, size: TerminalSize) -> None:
        """There is no terminal."""

    def __exit__(self, *_: object) -> None:
        self._close_given()
        if self._feeder is not None:
            self._feeder.stop()
        if self._feed >= 0:
            os.close(self._feed)
        os.close(self.stdout)
        os.close(self.stderr)

    def _close_given(self) -> None:
        for fd in (self._input, self._stdout, self._stderr):
            if fd >= 0:
                os.close(fd)
        self._input = self._stdout = self._stderr = -1


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    undo.callback(os.close, read)
    undo.callback(os.close, write)
    return read, write
