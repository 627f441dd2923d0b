"""Is this host fit? One finding per thing that sandboxes need, each with what to do, each probe with a time limit."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbay.adapters.providers.oci.cgroups import Cgroups, Layout, enforceable
from sandbay.adapters.providers.oci.network import SandboxNetwork
from sandbay.adapters.providers.oci.resident import Resident
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
    resident: Resident
    home: Path
    network: SandboxNetwork

    def enforceable(self) -> frozenset[Resource]:
        """Limits that control groups can enforce here."""
        root = self.cgroups.members / "cgroup.controllers"
        return enforceable(self.cgroups, root.read_text() if root.exists() else "")


def diagnose(host: Host) -> Sequence[Finding]:
    """All findings, good ones too. What cannot be looked at, because something else is missing, says so."""
    version = host.runtime.version(_SECONDS)
    # Half of it is tried out in namespaces; where nobody can make them, the rest would only repeat that.
    enclosing = shutil.which("unshare") is not None
    return (
        _root(),
        _runtime(host, version),
        _seccomp(host, version),
        _init(host),
        _user_namespaces() if enclosing else _unseen("user_namespaces"),
        _overlay(),
        _idmap(host) if enclosing else _unseen("idmapped_mounts"),
        _cgroup_kill(host),
        _limits(host),
        _network(host),
    )


def _good(name: str, says: str) -> Finding:
    return Finding(name, ok=True, says=says)


def _bad(name: str, says: str, do: str) -> Finding:
    return Finding(name, ok=False, says=says, reason=Reason.HOST_UNFIT, do=do)


def _unseen(name: str) -> Finding:
    return _bad(name, "cannot be looked at without the program unshare", "install the package util-linux")


def _root() -> Finding:
    if os.geteuid() == 0:
        return _good("root", "runs as root")
    return _bad("root", "this process is not root", "start it with sudo")


def _runtime(host: Host, version: str | None) -> Finding:
    if version is None:
        program = host.runtime.program
        return _bad("runtime", f"{program} does not answer", f"install the package {Path(program).name}")
    return _good("runtime", "".join(version.splitlines()[:1]))


def _seccomp(host: Host, version: str | None) -> Finding:
    program = host.runtime.program
    if version is None:
        says = f"cannot be looked at without {program}"
        return _bad("seccomp", says, f"install the package {Path(program).name}")
    if "seccomp" not in version.lower():
        return _bad("seccomp", f"{program} was built without seccomp", "install the one of your distribution")
    return _good("seccomp", "the runtime filters system calls")


def _init(host: Host) -> Finding:
    """A real run: a program of another architecture, or a script, would not be an init."""
    fault, init = host.resident.fault, host.resident.init
    if fault is None:
        return _good("init", "commands are started by each sandbox's own first process")
    if _exit_code([str(init), "-V"]) != 0:
        return _bad("init", f"{fault}, and no init at {init}", f"install the package {init.name}")
    return _good("init", f"{init} runs; commands take the runtime's longer way, since {fault}")


def _user_namespaces() -> Finding:
    if _exit_code(["unshare", "--user", "--map-root-user", "true"]) != 0:
        do = "set user.max_user_namespaces (sysctl) above 0; in a container, allow it unshare and mount"
        return _bad("user_namespaces", "user namespaces cannot be made", do)
    return _good("user_namespaces", "user namespaces can be made")


def _overlay() -> Finding:
    known = Path("/proc/filesystems").read_text().split()
    if "overlay" not in known and _exit_code(["modprobe", "overlay"]) != 0:
        return _bad("overlay", "the kernel has no overlay file system", "load it: modprobe overlay")
    return _good("overlay", "the kernel has the overlay file system")


def _idmap(host: Host) -> Finding:
    why = rootfs.idmap_supported(host.home)
    if why is not None:
        do = f"have kernel 5.19 or newer (this is {os.uname().release}), and SANDBAY_HOME on ext4, xfs or btrfs"
        return _bad("idmapped_mounts", f"layers cannot be mounted with shifted owners: {why}", do)
    return _good("idmapped_mounts", "layers can be mounted with shifted owners")


def _cgroup_kill(host: Host) -> Finding:
    if host.cgroups.own_mount:
        if "cgroup2" not in Path("/proc/filesystems").read_text():
            says = "the kernel has no cgroup2, which ends a command's whole tree"
            return _bad("cgroup_kill", says, "have a kernel with CONFIG_CGROUPS and cgroup2")
    elif tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (5, 14):
        says = f"this kernel, {os.uname().release}, cannot kill a control group in one step"
        return _bad("cgroup_kill", says, "have kernel 5.14 or newer")
    return _good("cgroup_kill", f"control groups: {host.cgroups.layout}")


def _limits(host: Host) -> Finding:
    missing = sorted(_WANTED - host.enforceable())
    if missing:
        where = "cgroup.controllers" if host.cgroups.layout is Layout.UNIFIED else "/sys/fs/cgroup"
        return _bad("limits", f"no control group controller for {', '.join(missing)}", f"enable it in {where}")
    return _good("limits", "cpus, memory and pids can be limited")


_NO_NAMES = "the host's own nameservers are its loopback's or IPv6; name others in SANDBAY_NAMESERVERS"


def _network(host: Host) -> Finding:
    """Not fatal: without it only Sessions that ask for a network are refused."""
    fault = host.network.fault()
    if fault is not None:
        says = f"sandboxes cannot have a network: {fault.seen}"
        return Finding("network", ok=False, says=says, fatal=False, do=fault.do)
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
