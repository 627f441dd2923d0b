"""Is this host fit? One finding per thing that sandboxes need, each with what to do, each probe with a time limit."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbay.adapters.providers.oci.cgroups import Cgroups, Layout, enforceable
from sandbay.adapters.providers.oci.network import SandboxNetwork
from sandbay.adapters.providers.oci.runtime import Runtime
from sandbay.domain.declaration import Resource
from sandbay.domain.reasons import Reason
from sandbay.engine import rootfs
from sandbay.ports.provider import Finding

_SECONDS = 5.0
_WANTED = frozenset({Resource.CPUS, Resource.MEMORY, Resource.PIDS})


@dataclass(frozen=True)
class Host:
    """What a diagnosis looks at."""

    runtime: Runtime
    cgroups: Cgroups
    init: Path
    home: Path
    network: SandboxNetwork

    def enforceable(self) -> frozenset[Resource]:
        """Limits that control groups can enforce here."""
        root = self.cgroups.members / "cgroup.controllers"
        return enforceable(self.cgroups, root.read_text() if root.exists() else "")


def diagnose(host: Host) -> Sequence[Finding]:
    """All findings, good ones too."""
    return (
        _root(),
        *_runtime(host),
        _init(host),
        _user_namespaces(),
        _overlay(),
        _idmap(host),
        _cgroup_kill(host),
        _limits(host),
        _network(host),
    )


def _finding(name: str, fault: str | None, good: str) -> Finding:
    """A good finding, or a fault that says what to do."""
    return Finding(name, fault is None, fault or good, None if fault is None else Reason.HOST_UNFIT)


def _root() -> Finding:
    fault = None if os.geteuid() == 0 else "this process is not root: start it with sudo"
    return _finding("root", fault, "runs as root")


def _runtime(host: Host) -> tuple[Finding, Finding]:
    program = host.runtime.program
    version = host.runtime.version(_SECONDS)
    missing = None if version is not None else f"{program} does not answer: install the package {Path(program).name}"
    first = (version or "").splitlines()[:1]
    filters = None if version and "libseccomp" in version else f"{program} was built without seccomp: install another"
    return _finding("runtime", missing, "".join(first)), _finding(
        "seccomp", filters, "the runtime filters system calls"
    )


def _init(host: Host) -> Finding:
    """A real run: a program of another architecture, or a script, would not be an init."""
    fault = None
    if _exit_code([str(host.init), "-V"]) != 0:
        fault = f"there is no init at {host.init}: install the package {host.init.name}"
    return _finding("init", fault, f"{host.init} runs")


def _user_namespaces() -> Finding:
    fault = None
    if _exit_code(["unshare", "--user", "--map-root-user", "true"]) != 0:
        fault = "user namespaces cannot be made: set user.max_user_namespaces (sysctl) above 0"
    return _finding("user_namespaces", fault, "user namespaces can be made")


def _overlay() -> Finding:
    known = Path("/proc/filesystems").read_text().split()
    fault = None
    if "overlay" not in known and _exit_code(["modprobe", "overlay"]) != 0:
        fault = "the kernel has no overlay file system: load the module overlay"
    return _finding("overlay", fault, "the kernel has the overlay file system")


def _idmap(host: Host) -> Finding:
    why = rootfs.idmap_supported(host.home)
    fault = None if why is None else f"layers cannot be mounted with shifted owners ({why}): kernel 5.19 or newer"
    return _finding("idmapped_mounts", fault, "layers can be mounted with shifted owners")


def _cgroup_kill(host: Host) -> Finding:
    fault = None
    if host.cgroups.own_mount:
        if "cgroup2" not in Path("/proc/filesystems").read_text():
            fault = "the kernel has no cgroup2: it is needed to end a command's whole tree"
    elif tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (5, 14):
        fault = "the kernel cannot kill a control group in one step: kernel 5.14 or newer"
    return _finding("cgroup_kill", fault, f"control groups: {host.cgroups.layout}")


def _limits(host: Host) -> Finding:
    missing = sorted(_WANTED - host.enforceable())
    where = "cgroup.controllers" if host.cgroups.layout is Layout.UNIFIED else "/sys/fs/cgroup"
    fault = f"no control group controller for {', '.join(missing)}: enable it in {where}" if missing else None
    return _finding("limits", fault, "cpus, memory and pids can be limited")


_NO_NAMES = "the host's own nameservers are its loopback's or IPv6; name others in SANDBAY_NAMESERVERS"


def _network(host: Host) -> Finding:
    """Not fatal: without it only Sessions that ask for a network are refused."""
    fault = host.network.fault()
    if fault:
        return Finding("network", ok=False, says=f"sandboxes cannot have a network: {fault}", fatal=False)
    servers = ", ".join(host.network.nameservers())
    names = f"ask {servers} for names" if servers else f"know no names: {_NO_NAMES}"
    allowed = "".join(f", {each} allowed" for each in host.network.reach.allowed)
    says = f"sandboxes can have a network (mode enabled) and {names}{allowed}"
    return Finding("network", ok=True, says=says, fatal=False)


def _exit_code(argv: Sequence[str]) -> int | None:
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(argv, stdin=nothing, stdout=nothing, stderr=nothing, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode
