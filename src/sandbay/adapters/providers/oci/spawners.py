"""The node's ends to the sandboxes' spawners.

A sandbox's first process is its spawner, and has the other end from its start. With the node that held ours it becomes
a plain init; for the next node a second spawner is started beside it, which ends with that node.
"""

import contextlib
import json
import select
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from sandbay.adapters.providers.oci.bundle import SPAWNER, Program, process
from sandbay.adapters.providers.oci.calls import Sandbox
from sandbay.adapters.providers.oci.cgroups import Cgroups, exec_command
from sandbay.adapters.providers.oci.groups import SECOND, Groups
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.runtime import Runtime, open_files
from sandbay.adapters.providers.oci.streams import START_SECONDS
from sandbay.domain.command import User

PASS = ("--preserve-fds", "1")
"""The runtime's option to hand descriptor 3 on."""


@dataclass(frozen=True, eq=False)
class Spawner:
    """Our end; `first` tells whether it is the sandbox's first process that listens."""

    control: socket.socket
    first: bool

    @property
    def gone(self) -> bool:
        """Whether nobody listens any more."""
        look = select.poll()
        try:
            look.register(self.control, 0)
        except ValueError:
            return True
        return bool(look.poll(0))


class Spawners:
    """Those of all sandboxes of a provider, by the sandbox's name. Safe to use from many threads."""

    def __init__(self, runtime: Runtime, cgroups: Cgroups, reaping: Reaping) -> None:
        """None is known at first."""
        self._runtime, self._cgroups, self._reaping = runtime, cgroups, reaping
        self._lock = threading.Lock()
        self._starts: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._known: dict[str, Spawner | None] = {}

    @contextlib.contextmanager
    def offered(self, name: str, *, first: bool = True) -> Iterator[int]:
        """The descriptor for a spawner that the block starts; it counts once the block has ended well."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(START_SECONDS)
        try:
            with theirs:
                yield theirs.fileno()
        except BaseException:
            ours.close()
            raise
        self._known[name] = Spawner(ours, first)

    def of(self, sandbox: Sandbox) -> Spawner | None:
        """Its spawner, started if need be, or None when it has none or none can be started now."""
        with self._lock:
            if sandbox.name in self._known:
                return self._known[sandbox.name]
            start = self._starts.get(sandbox.name) or self._starts.setdefault(sandbox.name, threading.Lock())
        with start:
            if sandbox.name not in self._known:
                self._start_second(sandbox)
            return self._known.get(sandbox.name)

    def forget(self, name: str, spawner: Spawner | None = None) -> None:
        """The sandbox has ended, or at least this one of its spawners."""
        with self._lock:
            known = self._known.get(name)
            if spawner is None or known is spawner:
                self._known.pop(name, None)
                if known is not None:
                    known.control.close()

    def close(self) -> None:
        """Let go of all."""
        for name in list(self._known):
            self.forget(name)

    def _start_second(self, sandbox: Sandbox) -> None:
        groups = Groups(self._cgroups, sandbox.group)
        if not _is_spawner(groups.init_pid()):
            self._known[sandbox.name] = None
            return
        folder = sandbox.execs / SECOND
        folder.mkdir(mode=0o700, exist_ok=True)
        document = process(Program(SPAWNER[0], SPAWNER, {}, User(0, 0), "/"), open_files=open_files())
        (folder / "process.json").write_text(json.dumps(document))
        groups.make_exec(SECOND, exist_ok=True)
        files = ["--pid-file", str(folder / "pid"), "--process", str(folder / "process.json")]
        arguments = ["--detach", *PASS, *files, sandbox.name]
        prefix = self._runtime.prefix(folder / "log")
        argv = exec_command(self._cgroups, sandbox.group, SECOND, prefix, arguments)
        try:
            with contextlib.suppress(_NotNowError), self.offered(sandbox.name, first=False) as fd:
                if self._reaping.call(argv, folder / "pid", START_SECONDS, [fd]) != 0:
                    raise _NotNowError
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class _NotNowError(Exception):
    """The sandbox may be at its limit, or about to end."""


def _is_spawner(pid: int | None) -> bool:
    """Whether a sandbox's first process is one; other kinds are started with other arguments."""
    try:
        line = b"" if pid is None else Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return line == "".join(part + "\0" for part in SPAWNER).encode()
