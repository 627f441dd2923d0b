"""What a host shows of sandboxes: mounts, processes, cgroup folders, network namespaces."""

import os
import subprocess
from pathlib import Path


def traces(label: str) -> set[str]:
    """Everything on this host that carries the label: an installation's folder, an id."""
    found = {
        f"mount {line.split()[4]}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if label in line
    }
    for pid in (p.name for p in Path("/proc").iterdir() if p.name.isdigit()):
        try:
            line = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if label in line and int(pid) != os.getpid():
            found.add(f"process {pid} {line}")
    return found


def shape() -> dict[str, list[str]]:
    """What must be the same before and after: mount points, cgroup folders of ours, named network namespaces."""
    mounts = sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    groups = sorted(str(p) for p in Path("/sys/fs/cgroup").rglob("sandbay*"))
    netns = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {"mounts": mounts, "cgroups": groups, "netns": sorted(netns)}
