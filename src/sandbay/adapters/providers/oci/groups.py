"""One sandbox's control groups, done: make, look, end, remove. Paths and values come from `cgroups`."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from sandbay.adapters.providers.oci.cgroups import Cgroups, Layout, below
from sandbay.engine import linux

_GONE_SECONDS = 10.0
_STEP_SECONDS = 0.002


class Groups:
    """The groups of one sandbox in all hierarchies, and those of its execs in cgroup2."""

    def __init__(self, cgroups: Cgroups, group: PurePosixPath) -> None:
        """Nothing is made or touched yet."""
        self._cgroups = cgroups
        self._group = group
        self.members = below(cgroups.members, group)

    def make(self) -> None:
        """Make the cgroup2 folder, and its mount where that is ours. The runtime makes what it manages itself."""
        if self._cgroups.layout is Layout.UNIFIED:
            return
        if self._cgroups.own_mount and not (self._cgroups.members / "cgroup.procs").exists():
            self._cgroups.members.mkdir(exist_ok=True)
            linux.mount("cgroup2", self._cgroups.members, "cgroup2", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        self.members.mkdir(parents=True, exist_ok=True)

    def init_pid(self) -> int | None:
        """The host's pid of the sandbox's first process, or None when it does not run.

        The group itself, execs apart, holds that process alone; `NSpid` tells it from a runtime at work.
        """
        return next((pid for pid in _pids(self.members) if _is_first_inside(pid)), None)

    def stop(self, number: signal.Signals, grace: float) -> None:
        """Signal everything but the first process, and wait up to `grace` seconds for it to go."""
        first = self.init_pid()
        others = self._send(self.members, number, first)
        deadline = time.monotonic() + grace
        while others and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)
            others = any(pid != first for folder in _tree(self.members) for pid in _pids(folder))

    def send(self, number: signal.Signals, name: str) -> None:
        """Send it to every process of exec `name`; harmless when there is none."""
        self._send(self.members / name, number)

    def kill(self, name: str = "") -> None:
        """End every process of the sandbox, or of its exec `name`; returns when they are gone."""
        # The first one leaves its group before the rest of its namespace has been reaped, and only then ends.
        with _ends(None if name else self.init_pid()) as has_ended:
            self.strike(name)
            deadline = time.monotonic() + _GONE_SECONDS
            while _populated(self.members / name) or not has_ended():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"processes of {self._group / name} do not end")
                time.sleep(_STEP_SECONDS)

    def strike(self, name: str = "") -> None:
        """As `kill`, without waiting."""
        with contextlib.suppress(FileNotFoundError):
            (self.members / name / "cgroup.kill").write_text("1")

    def make_exec(self, name: str) -> None:
        """A group of its own for one exec."""
        (self.members / name).mkdir()

    def drop_exec(self, name: str) -> bool:
        """Remove an exec's group; False while processes that it left behind are in it."""
        try:
            (self.members / name).rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove all folders of the sandbox."""
        for root in self._cgroups.roots:
            folder = below(root, self._group)
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:  # it has folders below, or is busy
                for inner in _tree(folder):
                    _rmdir_patiently(inner)

    @staticmethod
    def _send(root: Path, number: signal.Signals, spare: int | None = None) -> bool:
        sent = False
        for folder in _tree(root):
            for pid in _pids(folder):
                if pid == spare:
                    continue
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    handle = os.pidfd_open(pid)
                    try:
                        # The handle is of whoever has the number now; only who is still in the group is meant.
                        if pid in _pids(folder):
                            signal.pidfd_send_signal(handle, number)
                            sent = True
                    finally:
                        os.close(handle)
        return sent


@contextlib.contextmanager
def _ends(pid: int | None) -> Iterator[Callable[[], bool]]:
    """To be asked whether a process has ended; one that is not there has."""
    try:
        handle = None if pid is None else os.pidfd_open(pid)
    except ProcessLookupError:
        handle = None
    try:
        yield lambda: handle is None or bool(select.select([handle], [], [], 0)[0])
    finally:
        if handle is not None:
            os.close(handle)


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except (FileNotFoundError, OSError):
        return []


def _is_first_inside(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    numbers = fields.get("NSpid", "").split()
    return len(numbers) > 1 and numbers[-1] == "1" and fields.get("State", "").strip()[:1] not in ("Z", "X")


def _populated(folder: Path) -> bool:
    try:
        return "populated 1" in (folder / "cgroup.events").read_text()
    except FileNotFoundError:
        return False


def _tree(folder: Path) -> Iterator[Path]:
    """A folder and all below it, children first."""
    if not folder.is_dir():
        return
    for inner, _, _ in os.walk(folder, topdown=False):
        yield Path(inner)


def _rmdir_patiently(folder: Path) -> None:
    """A group whose processes have just ended can be busy for a moment."""
    deadline = time.monotonic() + _GONE_SECONDS
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_STEP_SECONDS)
        else:
            return
