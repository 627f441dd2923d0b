"""From an order to the OCI runtime's bundle: a pure function from what is known to `config.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sandbay.adapters.providers.oci.ranges import RANGE
from sandbay.domain.command import WORKSPACE, TerminalSize, User

_DEV = "/dev"
MOUNT_POINTS = ("/proc", _DEV, "/sys", WORKSPACE)
"""Where something is mounted over what an image has there, which can only be a folder, or nothing."""
INIT = f"{_DEV}/.sandbay-init"
SPAWNER = (INIT,)
REAPER = (INIT, "-P")
"""Command lines of the first process, which tell one kind from the other."""

_MIB = 1024 * 1024

CAPABILITIES = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
)
"""Docker's default set less MKNOD, NET_RAW and AUDIT_WRITE; each counts inside the sandbox's user namespace only."""

MASKED = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

_OPEN_FILES = 65_536
_NO_IPV6 = {"net.ipv6.conf.default.disable_ipv6": "1"}
"""For interfaces still to come; the loopback keeps its address."""
_NAMESPACES = ("pid", "ipc", "uts", "mount", "network", "user", "cgroup")


@dataclass(frozen=True)
class Parts:
    """What a bundle is made of. Paths are the host's; `base` is the first host id of the range.

    `init` starts programs for the node where `spawns`; it then holds what it hands on, and installs the filter of
    system calls itself, so that the runtime does not compile `seccomp` at each start.

    `open_files` is the hard limit of this process, which not every root may raise.
    `network_files` (path inside → file) are there with a network only, `ipv6` says whether the kernel has it.
    """

    hostname: str
    rootfs: Path
    workspace: Path
    init: Path
    spawns: bool
    base: int
    group: PurePosixPath
    open_files: int
    resources: Mapping[str, object]
    seccomp: Mapping[str, object]
    network_files: Mapping[str, Path] | None = None
    ipv6: bool = False


def spec(parts: Parts) -> dict[str, object]:
    """The whole `config.json`. The first process is our init; one that only reaps has no capability at all."""
    mapping = [{"containerID": 0, "hostID": parts.base, "size": RANGE}]
    return {
        "ociVersion": "1.0.2",
        "hostname": parts.hostname,
        "root": {"path": str(parts.rootfs), "readonly": False},
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(SPAWNER if parts.spawns else REAPER),
            "env": [],
            "cwd": "/",
            "capabilities": _held(CAPABILITIES) if parts.spawns else {},
            "rlimits": _rlimits(parts.open_files),
            "noNewPrivileges": True,
        },
        "mounts": _mounts(parts),
        "linux": {
            "namespaces": [{"type": kind} for kind in _NAMESPACES],
            "uidMappings": mapping,
            "gidMappings": mapping,
            "cgroupsPath": str(parts.group),
            "resources": dict(parts.resources),
            **({} if parts.spawns else {"seccomp": dict(parts.seccomp)}),
            "maskedPaths": list(MASKED),
            "readonlyPaths": list(READ_ONLY),
            "sysctl": _NO_IPV6 if parts.network_files and parts.ipv6 else {},
        },
    }


@dataclass(frozen=True)
class Program:
    """What is to run in a sandbox: `file` is what the search for `argv`'s first led to, `workdir` an absolute path."""

    file: str
    argv: Sequence[str]
    env: Mapping[str, str]
    user: User
    workdir: str
    terminal: TerminalSize | None = None


def process(program: Program, *, open_files: int) -> dict[str, object]:
    """The process document of one exec. Only root keeps capabilities; others could only be handed them by a file."""
    user, terminal = program.user, program.terminal
    size = {} if terminal is None else {"consoleSize": {"height": terminal.rows, "width": terminal.columns}}
    return {
        "terminal": terminal is not None,
        **size,
        "user": {"uid": user.uid, "gid": user.gid, "additionalGids": list(user.groups)},
        "args": list(program.argv),
        "env": [f"{name}={value}" for name, value in program.env.items()],
        "cwd": program.workdir,
        "capabilities": _held(CAPABILITIES if user.uid == 0 else ()),
        "rlimits": _rlimits(open_files),
        "noNewPrivileges": True,
    }


def _held(capabilities: Sequence[str]) -> dict[str, object]:
    return {"bounding": list(CAPABILITIES), "effective": list(capabilities), "permitted": list(capabilities)}


def _rlimits(open_files: int) -> list[dict[str, object]]:
    bound = min(_OPEN_FILES, open_files)
    return [
        {"type": "RLIMIT_CORE", "soft": 0, "hard": 0},
        {"type": "RLIMIT_NOFILE", "soft": bound, "hard": bound},
    ]


def _mounts(parts: Parts) -> list[dict[str, object]]:
    return [
        _mount("/proc", "proc", "proc", "nosuid", "noexec", "nodev"),
        _mount(_DEV, "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", f"size={_MIB}"),
        _mount(f"{_DEV}/pts", "devpts", "devpts", *_DEVPTS),
        _mount(f"{_DEV}/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777", f"size={64 * _MIB}"),
        _mount(f"{_DEV}/mqueue", "mqueue", "mqueue", "nosuid", "noexec", "nodev"),
        _mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
        _mount(INIT, "bind", str(parts.init), "bind", "ro", "nosuid", "nodev"),
        _mount(WORKSPACE, "bind", str(parts.workspace), "bind", "rw", "nosuid", "nodev"),
        *(_mount(path, "bind", str(file), *_SERVED) for path, file in (parts.network_files or {}).items()),
    ]


_SERVED = ("bind", "ro", "nosuid", "nodev", "noexec")
_DEVPTS = ("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5")


def _mount(target: str, kind: str, source: str, *options: str) -> dict[str, object]:
    return {"destination": target, "type": kind, "source": source, "options": list(options)}
