"""Podman with folders of the bench's own, and the same runtime as everybody else."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.host import named, no_groups_left, run, wait_until

_ALIKE = ("--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=none", "--storage-driver=overlay")
ULIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
"""Its own defaults raise limits, which not every root may."""


@contextlib.contextmanager
def folders(root: Path) -> Iterator[tuple[str, ...]]:
    """The start of a command line whose images and containers are in `root`; none of them is left afterwards."""
    prefix = "sandbay-bench-podman-"
    with no_groups_left("libpod_parent"), tempfile.TemporaryDirectory(prefix=prefix, dir="/run") as volatile:
        where = (f"--root={root}", f"--runroot={volatile}/run", f"--tmpdir={volatile}/state")
        command = ("podman", *where, *_ALIKE)
        try:
            yield command
        finally:
            run(*command, "rm", "--all", "--force", "--time=0")
            run(*command, "rmi", "--all", "--force")
            # What it does once a container has ended may be late, and would make its folders anew.
            wait_until(lambda: not (named("podman", volatile) or named("conmon", volatile)), "podman's end")
            if (root / "overlay").is_mount():
                run("umount", root / "overlay")
