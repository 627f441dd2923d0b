"""The node's ways to the sandboxes' spawners.

A sandbox's first process holds both ends of the socket that it listens on. Whoever may do anything on this host takes a
copy of the other one, at the sandbox's start and again after a crash of the node; nobody inside may.
"""

import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sandbay.adapters.providers.oci.bundle import REAPER, SPAWNER
from sandbay.adapters.providers.oci.calls import Sandbox
from sandbay.adapters.providers.oci.cgroups import Cgroups
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.streams import START_SECONDS
from sandbay.engine import linux

_ITS_NUMBER = 4
_STEP_SECONDS = 0.001


@dataclass(frozen=True, eq=False)
class Spawner:
    """Our end."""

    control: socket.socket


class Spawners:
    """Those of all sandboxes of a provider, by the sandbox's name. Safe to use from many threads."""

    def __init__(self, cgroups: Cgroups) -> None:
        """None is known at first."""
        self._cgroups = cgroups
        self._lock = threading.Lock()
        self._known: dict[str, Spawner] = {}

    def of(self, sandbox: Sandbox) -> Spawner | None:
        """Its spawner, or None when its first process is none, or cannot be reached."""
        with self._lock:
            known = self._known.get(sandbox.name)
        if known is not None or (found := self._find(sandbox)) is None:
            return known
        with self._lock:
            known = self._known.setdefault(sandbox.name, found)
        if known is not found:
            found.control.close()
        return known

    def forget(self, name: str) -> None:
        """The sandbox has ended."""
        with self._lock:
            known = self._known.pop(name, None)
        if known is not None:
            known.control.close()

    def close(self) -> None:
        """Let go of all."""
        for name in list(self._known):
            self.forget(name)

    def _find(self, sandbox: Sandbox) -> Spawner | None:
        """Wait for a sandbox that starts: until then its first process is still the runtime's."""
        end = time.monotonic() + START_SECONDS
        while (pid := Groups(self._cgroups, sandbox.group).init_pid()) is not None and time.monotonic() < end:
            line = _command_line(pid)
            if line == REAPER:
                return None
            if line == SPAWNER:
                return _reach_process(pid)
            time.sleep(_STEP_SECONDS)
        return None


def _reach_process(pid: int) -> Spawner | None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        return Spawner(reach(handle, START_SECONDS))
    except OSError:
        return None
    finally:
        os.close(handle)


def reach(handle: int, seconds: float) -> socket.socket:
    """The way to the spawner that a process handle is of, as soon as it listens.

    Raises `PermissionError` when this process may not, and other `OSError` when it has ended or time is over.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            control = socket.socket(fileno=linux.pidfd_getfd(handle, _ITS_NUMBER))
        except (PermissionError, ProcessLookupError):
            raise
        except OSError:  # it has not come so far yet
            if time.monotonic() > end:
                raise
        else:
            if (control.family, control.type) == (socket.AF_UNIX, socket.SOCK_SEQPACKET):
                control.settimeout(START_SECONDS)
                return control
            control.close()
        time.sleep(_STEP_SECONDS)


def _command_line(pid: int) -> tuple[str, ...]:
    """Which kind of first process it is; each is started with other arguments."""
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0").split("\0"))
    except (FileNotFoundError, ProcessLookupError):
        return ()
