"""The program that is every sandbox's first process: our spawner, or an init of the host's where that cannot be used.

The spawner lies on a small file system of its own while there are sandboxes: the mount tables inside show where a file
lies on its file system, which is thus its name alone, and `/run` may not allow programs. All sandboxes share its pages.
"""

import os
import platform
import subprocess
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sandbay.adapters.providers.oci.bundle import INIT
from sandbay.adapters.providers.oci.seccomp import compiled
from sandbay.adapters.providers.oci.spawner import ENDINGS
from sandbay.adapters.providers.oci.spawners import reach
from sandbay.engine import linux

PACKAGED = Path(__file__).with_name("native") / f"spawner-{platform.machine()}"
"""As built from `native/spawner.c` for this kind of processor, if it has been."""

_SECONDS = 5.0
_ROOT_READS = 0o400
_UNREADABLE = 0o111
"""Whoever runs it cannot read it, so the kernel lets nobody look into the process, from its first instruction on."""
_FILTER = "filter"


@dataclass(frozen=True, slots=True)
class First:
    """A sandbox's first process: its program, and as its standard input the filter of system calls that it installs.

    There is no such file where the runtime has to install the filter.
    """

    program: Path
    filter: Path | None = None


class Resident:
    """One per provider; `run` is its volatile folder."""

    def __init__(self, run: Path, spawner: Path | None, init: Path) -> None:
        """`init` takes the place of the `spawner` where there is none, or it cannot be used."""
        self.init = init
        self._folder = run / "init"
        self._spawner = spawner
        self._lock = threading.Lock()

    @cached_property
    def fault(self) -> str | None:
        """Why the spawner cannot be used here; None when it can."""
        if self._spawner is None or not self._spawner.exists() or self._filter is None:
            return f"there is no spawner for {platform.machine()}"
        return _try(self._spawner.read_bytes(), self._filter)

    @cached_property
    def _filter(self) -> bytes | None:
        return compiled(platform.machine())

    def place(self) -> First:
        """What lies ready for the runtime. Raises `OSError`."""
        if self._spawner is None or self._filter is None or self.fault is not None:
            return First(self.init)
        program = self._spawner.read_bytes()
        with self._lock:
            self._folder.mkdir(exist_ok=True)
            if not self._folder.is_mount():
                options = "mode=711,size=1m"
                linux.mount("tmpfs", self._folder, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
            return First(
                self._lay(Path(INIT).name, program, _UNREADABLE), self._lay(_FILTER, self._filter, _ROOT_READS)
            )

    def _lay(self, name: str, content: bytes, mode: int) -> Path:
        file = self._folder / name
        if not file.exists() or file.read_bytes() != content:
            # Renamed into place: sandboxes of an older version keep theirs.
            new = file.with_suffix(".new")
            new.write_bytes(content)
            new.chmod(mode)
            new.rename(file)
        return file

    def remove(self) -> None:
        """With the last sandbox gone, it is needed no longer; may be repeated."""
        with self._lock:
            while self._folder.is_mount():
                linux.umount2(self._folder, linux.MNT_DETACH)
            if self._folder.exists():
                self._folder.rmdir()


def _try(program: bytes, calls: bytes) -> str | None:
    """Run it, from a memory file, and reach it: why not, or None. One of another processor would not be an init."""
    nothing = subprocess.DEVNULL
    with ExitStack() as stack:
        fd, given = (_memory_file(stack, content) for content in (program, calls))
        try:
            path = f"/proc/self/fd/{fd}"
            process = subprocess.Popen([path], stdin=given, stdout=nothing, stderr=nothing, pass_fds=(fd,))
        except OSError:
            return "the spawner cannot be run here"
    with process:
        handle = os.pidfd_open(process.pid)
        try:
            reach(handle, _SECONDS).close()
        except PermissionError:
            return "this process may not reach into others (it lacks CAP_SYS_PTRACE)"
        except OSError:
            return f"the spawner does not listen: {ENDINGS.get(process.poll() or 0, 'nobody knows why')}"
        finally:
            os.close(handle)
            process.kill()
    return None


def _memory_file(stack: ExitStack, content: bytes) -> int:
    """A descriptor for reading alone: nobody runs a file that is open for writing."""
    with os.fdopen(os.memfd_create("spawner", os.MFD_CLOEXEC), "wb") as file:
        file.write(content)
        file.flush()
        fd = os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    return fd
