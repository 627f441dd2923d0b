"""What a build may use of the host: memory and processes, by control groups of its own; processor by being nice.

The groups lie at the root of each hierarchy and are named after the work folder, so that whoever sweeps that finds
them. A host that lets nobody make groups has no bounds to offer, which the log says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

from sandbay.ports.builder import Say

MEMORY = 4 * 1024**3
"""Bytes, page cache included, which the kernel takes back first."""
PROCESSES = 4096

_TRIES, _PAUSE = 100, 0.05
_MOUNTS = Path("/proc/self/mountinfo")
_ENTER = 'while [ "$1" != -- ]; do echo 0 >"$1/cgroup.procs" || exit; shift; done; shift; exec "$@"'
_V1 = {"memory": {"memory.limit_in_bytes": str(MEMORY)}, "pids": {"pids.max": str(PROCESSES)}}
_V2 = {"memory.max": str(MEMORY), "pids.max": str(PROCESSES)}


@contextmanager
def bounded(work: Path, say: Say) -> Iterator[tuple[str, ...]]:
    """What goes before a command so that it runs within the bounds. The groups go once it has ended."""
    made = []
    try:
        for folder, limits in _folders(work).items():
            folder.mkdir()
            made.append(folder)
            for name, value in limits.items():
                (folder / name).write_text(value)
    except OSError as error:
        say(f"This build's memory and processes are not bounded: {error.strerror}.\n")
        remove_groups(work)
        made = []
    try:
        yield ("sh", "-c", _ENTER, "sh", *map(str, made), "--") if made else ()
    finally:
        remove_groups(work)


def remove_groups(work: Path) -> None:
    """Remove what there is of a build's groups; nothing is in them any more."""
    for folder in _folders(work):
        for _ in range(_TRIES):
            with suppress(OSError):
                folder.rmdir()
            if not folder.exists():
                break
            sleep(_PAUSE)  # the kernel lets go of who has just ended a moment later


def _folders(work: Path) -> Mapping[Path, Mapping[str, str]]:
    """Each group of a build with its limits."""
    v1: dict[str, Path] = {}
    v2: Path | None = None
    for line in _MOUNTS.read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4])
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            v2 = v2 or point
        elif kind == "cgroup":
            v1 |= {name: point for name in options.split(",") if name in _V1 and name not in v1}
    name = f"sandbay-build-{work.name}"
    if v1:
        return {point / name: _V1[controller] for controller, point in v1.items()}
    return {} if v2 is None else {v2 / name: _V2}
