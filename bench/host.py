"""The machine under measurement: fresh file systems, and what processes have cost."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SCRATCH = Path("/var/tmp")  # noqa: S108 - a disk, and searchable for the users of sandboxes; names in it are random
_TICKS = os.sysconf("SC_CLK_TCK")
_GIB = 1024**3
_AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
_FIRST = -12


class UnmeasurableError(Exception):
    """Why a figure cannot be measured on this machine."""


def run(*command: str | Path, seconds: float = 300) -> str:
    """Run a program that has to succeed; what it says on its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    if done.returncode:
        raise UnmeasurableError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """A scratch folder that ends with the block."""
    path = Path(tempfile.mkdtemp(prefix=f"sandbay-bench-{name}-", dir=SCRATCH))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def file_system(name: str, size: int = 6 * _GIB) -> Iterator[Path]:
    """A fresh ext4 in a sparse file, mounted: it does not matter what the disk has been through."""
    with folder(name) as place:
        image, mounted = place / "ext4", place / "mounted"
        with image.open("wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        mounted.mkdir()
        # Past the page cache of the disk below, as a disk of its own would be.
        device = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
        try:
            run("mount", device, mounted)
            try:
                mounted.chmod(0o711)
                yield mounted
            finally:
                # Out of sight in any case: what is left of the folder is removed next.
                run("umount", "--lazy", mounted)
        finally:
            run("losetup", "--detach", device)


def used(file_system: Path) -> int:
    """Bytes that are taken in a file system, once all is written."""
    run("sync", "-f", file_system)
    state = os.statvfs(file_system)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def processor_seconds(pids: Sequence[int]) -> float:
    """Processor time of processes and of their children that have ended."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total / _TICKS


def proportional(pids: Sequence[int]) -> int:
    """Bytes of memory that processes have, what they share counted in proportion."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def family(pid: int) -> list[int]:
    """A process and all below it."""
    below = Path(f"/proc/{pid}/task").glob("*/children")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [pid, *(each for path in below for child in path.read_text().split() for each in family(int(child)))]
    return []


def named(program: str, argument: str) -> list[int]:
    """Processes of a program that have an argument with this text in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if Path(words[0]).name.startswith(program) and any(argument in word for word in words[1:]):
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def no_groups_left(name: str) -> Iterator[None]:
    """Others leave the control groups that all of theirs stand in; what was not there before is removed."""
    before = _groups(name)
    try:
        yield
    finally:
        for group in _groups(name) - before:
            for path in sorted((group, *filter(Path.is_dir, group.rglob("*"))), reverse=True):
                path.rmdir()


def _groups(name: str) -> set[Path]:
    """In every hierarchy, whichever versions this machine has; links to one count once."""
    root = Path("/sys/fs/cgroup")
    return {path.resolve() for path in (root / name, *root.glob(f"*/{name}")) if path.is_dir()}


def wait_until(ready: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Look again and again. Raises `UnmeasurableError` when it takes too long."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise UnmeasurableError(f"{what} took longer than {seconds} s")
        time.sleep(0.02)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Everything that is measured goes before everybody else on this machine, docker's daemon and the registry alike.

    Groups of sessions would else share the processor by halves, whatever runs in them: they are off meanwhile.
    """
    before = _AUTOGROUP.read_text() if _AUTOGROUP.exists() else None
    os.setpriority(os.PRIO_PROCESS, 0, _FIRST)
    try:
        if before is not None:
            _AUTOGROUP.write_text("0")
        yield
    finally:
        if before is not None:
            _AUTOGROUP.write_text(before)
        os.setpriority(os.PRIO_PROCESS, 0, 0)
