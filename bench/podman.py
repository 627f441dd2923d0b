"""Podman with folders of the bench's own, and the same runtime as everybody else."""

import contextlib
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.host import run

_ALIKE = ("--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=none", "--storage-driver=overlay")
_OPEN_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
ULIMIT = f"--ulimit=nofile={_OPEN_FILES}:{_OPEN_FILES}"
"""Its own default raises the limit, which not every root may."""


@contextlib.contextmanager
def folders(root: Path) -> Iterator[tuple[str, ...]]:
    """The start of a command line whose images and containers are in `root`; none of them is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="sandbay-bench-podman-", dir="/run") as volatile:
        where = (f"--root={root}", f"--runroot={volatile}/run", f"--tmpdir={volatile}/state")
        command = ("podman", *where, *_ALIKE)
        try:
            yield command
        finally:
            run(*command, "rm", "--all", "--force", "--time=0")
            run(*command, "rmi", "--all", "--force")
            if (root / "overlay").is_mount():
                run("umount", root / "overlay")
