"""Programs in a running sandbox: each in a control group of its own, which is how its whole tree is ended.

`<execs>/<name>/` exists exactly as long as a call is in flight. A node that comes back after a crash therefore knows
which trees nobody waits for any more, and leaves those alone that a finished call left running on purpose.
"""

import contextlib
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from signal import Signals
from typing import Any, Protocol

from sandbay.adapters.providers.oci.bundle import Program
from sandbay.adapters.providers.oci.calls import Call, Sandbox
from sandbay.adapters.providers.oci.cgroups import Cgroups
from sandbay.adapters.providers.oci.exec_by_runtime import RuntimeExec
from sandbay.adapters.providers.oci.exec_by_spawner import SpawnerExec, UnreachableError
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.pipes import Pipes
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.runtime import Runtime
from sandbay.adapters.providers.oci.spawners import Spawners
from sandbay.adapters.providers.oci.streams import Guard, NotStarted, Source, Start, pump
from sandbay.adapters.providers.oci.terminal import Terminal
from sandbay.domain.command import TerminalSize
from sandbay.ports.provider import Exit

KILLED = 137


class Steer:
    """The port's `Steering` of one exec."""

    def __init__(self, groups: Groups, name: str, streams: Pipes | Terminal) -> None:
        """`name` is the exec's group."""
        self._groups, self._name, self._streams = groups, name, streams

    def resize(self, size: TerminalSize) -> None:
        """Its terminal has this size now."""
        self._streams.resize(size)

    def signal(self, number: Signals) -> None:
        """Send it to the whole tree."""
        self._groups.send(number, self._name)


class Way(Protocol):
    """One way to get a program started in a sandbox."""

    def streams(self, folder: Path, call: Call, /) -> Pipes | Terminal:
        """What the program gets as its streams; `folder` is the exec's own."""

    def start(self, sandbox: Sandbox, program: Program, folder: Path, streams: Any) -> Start:
        """Begin, in the exec's group, which is named like its folder. Raises `UnreachableError`."""


class Execs:
    """Starts programs, through the sandbox's spawner where it has one, else through the runtime."""

    def __init__(self, runtime: Runtime, cgroups: Cgroups, reaping: Reaping, spawners: Spawners) -> None:
        """Shared by all sandboxes of a provider."""
        self._cgroups = cgroups
        self._spawners = spawners
        self._by_runtime = RuntimeExec(runtime, cgroups, reaping)

    def run(self, sandbox: Sandbox, program: Program, call: Call) -> Exit | NotStarted:
        """Run to the end. Raises `FileNotFoundError` when the sandbox is gone, and what `emit` raises.

        Refuses with `start_failed` where only a spawner may start programs, and it does not answer.
        """
        name = f"e{secrets.token_hex(6)}"
        folder = sandbox.execs / name
        groups = Groups(self._cgroups, sandbox.group)
        folder.mkdir(mode=0o700)
        try:
            groups.make_exec(name)
            if (spawner := self._spawners.of(sandbox)) is not None:
                with contextlib.suppress(UnreachableError):
                    return self._run(SpawnerExec(self._cgroups, spawner), sandbox, program, call, folder)
            return self._run(self._by_runtime, sandbox, program, call, folder)
        except BaseException:
            groups.kill(name)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._sweep(sandbox, groups)

    def listens(self, sandbox: Sandbox) -> bool:
        """Whether its spawner takes requests; waits for one that starts."""
        return self._spawners.of(sandbox) is not None

    def abandon(self, sandbox: Sandbox) -> None:
        """End what an earlier node process had in flight."""
        groups = Groups(self._cgroups, sandbox.group)
        for folder in sandbox.execs.glob("e*"):
            groups.kill(folder.name)
            shutil.rmtree(folder, ignore_errors=True)
        self._sweep(sandbox, groups)

    def _run(self, way: Way, sandbox: Sandbox, program: Program, call: Call, folder: Path) -> Exit | NotStarted:
        groups = Groups(self._cgroups, sandbox.group)
        name = folder.name
        with (
            way.streams(folder, call) as streams,
            Guard(lambda: groups.strike(name), call.timeout, call.cancel) as guard,
            contextlib.closing(way.start(sandbox, program, folder, streams)) as start,
        ):

            def begin() -> Sequence[Source]:
                # A kill that came before the program was in its group has missed it.
                if guard.fired:
                    groups.strike(name)
                sources = streams.begin()
                if call.on_start is not None:
                    call.on_start(Steer(groups, name, streams))
                return sources

            ended = pump(start, call.emit, begin)
        return self._outcome(ended, guard, groups, name)

    @staticmethod
    def _outcome(ended: int | NotStarted, guard: Guard, groups: Groups, name: str) -> Exit | NotStarted:
        if guard.fired:
            groups.kill(name)
            code = KILLED if guard.timed_out or isinstance(ended, NotStarted) else ended
            return Exit(code, timed_out=guard.timed_out)
        return ended if isinstance(ended, NotStarted) else Exit(ended)

    def _sweep(self, sandbox: Sandbox, groups: Groups) -> None:
        """Drop groups of finished execs that are empty by now."""
        with contextlib.suppress(FileNotFoundError):
            for group in list(groups.members.glob("e*")):
                if not (sandbox.execs / group.name).exists():
                    groups.drop_exec(group.name)
