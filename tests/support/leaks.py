"""What a test may leave on the host, which is nothing of its installation.

Only what belongs to one installation is looked at: other tests and people use the same host.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

_RUNTIMES = ("runc", "crun")
_CGROUPS = Path("/sys/fs/cgroup")


def leftovers(installation: str, folders: Sequence[Path]) -> dict[str, list[str]]:
    """What the host still shows of an installation, by kind; empty when nothing.

    `folders` are its durable and volatile folders: mounts below them, and processes that name or use them, count.
    """
    roots = [str(folder) for folder in folders]
    # One and two levels, no walk: the groups of others come and go meanwhile.
    groups = {str(path) for depth in ("", "*/") for path in _CGROUPS.glob(f"{depth}*-{installation}")}
    namespaces = Path("/run/netns")
    found = {
        "mounts": [point for point in _mount_points() if any(_below(point, root) for root in roots)],
        "processes": _processes(installation, roots),
        "cgroups": sorted(groups),
        "interfaces and tables": _labelled(installation),
        "network namespaces": [p.name for p in namespaces.glob("*") if installation in p.name],
    }
    return {kind: things for kind, things in found.items() if things}


def _labelled(installation: str) -> list[str]:
    """Interfaces and packet rules that carry the installation's label."""
    found = []
    for interface in Path("/sys/class/net").iterdir():
        with contextlib.suppress(OSError):  # it may go while we look
            if installation in (interface / "ifalias").read_text():
                found.append(interface.name)
    if shutil.which("nft"):
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=False).stdout
        found += [line.strip() for line in rules.splitlines() if installation in line]
    return found


def real_sandboxes_or_skip() -> None:
    """Skip, by name, on a machine that lacks what a real sandbox needs."""
    missing = [] if os.geteuid() == 0 else ["root"]
    if not any(shutil.which(runtime) for runtime in _RUNTIMES):
        missing.append("a runtime (" + " or ".join(_RUNTIMES) + ")")
    if not Path("/bin/busybox").exists():
        missing.append("busybox-static")
    if missing:
        pytest.skip("this machine lacks " + ", ".join(missing))


def _mount_points() -> Iterable[str]:
    return [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")


def _processes(installation: str, roots: Sequence[str]) -> list[str]:
    """Processes in the installation's groups, or with its folders on their command line."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            grouped = f"-{installation}/" in (process / "cgroup").read_text()
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended while we looked
        if state == "Z" and int(parent) != os.getpid():
            continue  # it has ended, and the host's init is about to notice
        if grouped or any(root in command for root in roots):
            found.append(f"{process.name} {command.strip()}")
    return found
