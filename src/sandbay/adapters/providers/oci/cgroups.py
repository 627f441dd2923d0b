"""Control groups: which layout this host has, and, purely, the paths and values that each layout needs.

Membership and killing always go through cgroup2, whose `cgroup.kill` ends a whole tree in one write;
limits go where the controllers are.

| layout  | limits | cgroup2               | how an exec gets into its own group            |
|---------|--------|-----------------------|------------------------------------------------|
| unified | v2     | the host's            | the runtime places it (`exec --cgroup`)        |
| hybrid  | v1     | the host's, hidden    | the runtime's client starts there, it inherits |
| legacy  | v1     | a mount of our own    | as hybrid                                      |

Hidden from the runtime, because one that manages cgroup2 itself would move every exec out of its own cgroup again (crun
also when it was hidden only while the sandbox was created), and would need one folder per exec in all v1 hierarchies,
each a memory cgroup that lingers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePosixPath

from sandbay.domain.declaration import Resource
from sandbay.domain.deployment import SandboxSize

_PREFIX = "sandbay-"
PAGE = 4096
_CPU_PERIOD = 100_000
_HYBRID_MOUNT = Path("/sys/fs/cgroup/unified")
_CONTROLLERS = {Resource.CPUS: "cpu", Resource.MEMORY: "memory", Resource.PIDS: "pids"}


class Layout(StrEnum):
    """Which versions of control groups a host mounts."""

    UNIFIED = "unified"
    HYBRID = "hybrid"
    LEGACY = "legacy"


@dataclass(frozen=True)
class Cgroups:
    """Where things are. `v1` maps each controller (and `name=…` hierarchy) to its mount point."""

    layout: Layout
    members: Path
    v1: Mapping[str, Path] = field(default_factory=dict)

    @property
    def own_mount(self) -> bool:
        """Whether `members` is a mount that we have to make."""
        return self.layout is Layout.LEGACY

    @property
    def roots(self) -> tuple[Path, ...]:
        """Every hierarchy once, in a stable order."""
        return tuple(dict.fromkeys([self.members, *self.v1.values()]))


def find_layout(mountinfo: str, own: Path) -> Cgroups:
    """Read the layout from `/proc/self/mountinfo`; `own` is where we would mount cgroup2 ourselves."""
    v1: dict[str, Path] = {}
    v2: list[Path] = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = Path(before.split(" ")[4])
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2" and point != own:
            v2.append(point)
        elif kind == "cgroup":
            for name in options.split(","):
                if name not in ("rw", "ro", "xattr", "clone_children", "cpuset_v2_mode"):
                    v1.setdefault(name, point)
    if v2 and not v1:
        return Cgroups(Layout.UNIFIED, v2[0])
    if v2:
        return Cgroups(Layout.HYBRID, _HYBRID_MOUNT if _HYBRID_MOUNT in v2 else v2[0], v1)
    return Cgroups(Layout.LEGACY, own, v1)


def parent_path(installation: str) -> PurePosixPath:
    """The group of all sandboxes of an installation, below every hierarchy's root.

    It is shared with no other installation: one that ends would remove what another is just making a group in.
    """
    return PurePosixPath("/", f"{_PREFIX}{installation}")


def group_path(installation: str, allocation: str) -> PurePosixPath:
    """The sandbox's group below every hierarchy's root."""
    return parent_path(installation) / allocation


def below(root: Path, group: PurePosixPath) -> Path:
    """A group's folder in one hierarchy."""
    return root / group.relative_to("/")


def enforceable(cgroups: Cgroups, unified_controllers: str) -> frozenset[Resource]:
    """The limits that can be enforced here; `unified_controllers` is the root's `cgroup.controllers`."""
    there = set(unified_controllers.split()) if cgroups.layout is Layout.UNIFIED else set(cgroups.v1)
    return frozenset(resource for resource, name in _CONTROLLERS.items() if name in there)


def quota_of(size: SandboxSize) -> int:
    """Microseconds of processor time per period of 100 ms."""
    return round(size.cpus * _CPU_PERIOD)


def memory_of(size: SandboxSize) -> int:
    """Bytes in whole pages, as the kernel keeps them."""
    return size.memory // PAGE * PAGE


def resources(size: SandboxSize, *, swap: bool) -> dict[str, object]:
    """The OCI runtime's `linux.resources`. With `swap` accounted, memory and swap together get the same limit."""
    memory = {"limit": memory_of(size)} | ({"swap": memory_of(size)} if swap else {})
    return {
        "devices": [{"allow": False, "access": "rwm"}],
        "memory": memory,
        "cpu": {"quota": quota_of(size), "period": _CPU_PERIOD},
        "pids": {"limit": size.pids},
    }


def limit_files(cgroups: Cgroups, group: PurePosixPath, size: SandboxSize, *, swap: bool) -> dict[Path, str]:
    """What each limit's file must say once the sandbox is up: read back, a limit is known to hold."""
    memory, quota = str(memory_of(size)), str(quota_of(size))
    if cgroups.layout is Layout.UNIFIED:
        folder = below(cgroups.members, group)
        files = {
            folder / "memory.max": memory,
            folder / "cpu.max": f"{quota} {_CPU_PERIOD}",
            folder / "pids.max": str(size.pids),
        }
        return files | ({folder / "memory.swap.max": "0"} if swap else {})
    folders = {name: below(cgroups.v1[name], group) for name in _CONTROLLERS.values()}
    files = {
        folders["memory"] / "memory.limit_in_bytes": memory,
        folders["cpu"] / "cpu.cfs_quota_us": quota,
        folders["cpu"] / "cpu.cfs_period_us": str(_CPU_PERIOD),
        folders["pids"] / "pids.max": str(size.pids),
    }
    return files | ({folders["memory"] / "memory.memsw.limit_in_bytes": memory} if swap else {})


def swap_file(cgroups: Cgroups) -> Path | None:
    """The file whose presence shows that v1 accounts for swap; on v2 the runtime finds out by itself."""
    if cgroups.layout is Layout.UNIFIED:
        return None
    mount = cgroups.v1.get("memory")
    return mount / "memory.memsw.limit_in_bytes" if mount else None


_ENTER = 'echo 0 >"$0/cgroup.procs" && exec "$@"'
_ENTER_AND_HIDE = 'echo 0 >"$0/cgroup.procs" && umount -l "$1" && shift && exec "$@"'
_PROCS = 9
_ENTER_BY_DESCRIPTOR = f'echo 0 >&{_PROCS} && exec {_PROCS}>&- && exec "$@"'


@dataclass(frozen=True, slots=True)
class Aside:
    """What a runtime's client is started with: a mount out of its sight, and a group's `cgroup.procs` to enter by.

    `number` is the descriptor that it finds the latter at.
    """

    hidden: str
    procs: str
    number: int = _PROCS


def aside(cgroups: Cgroups, group: PurePosixPath) -> Aside | None:
    """What goes with `create_command`. The path of a hidden group cannot be named any more, hence the descriptor."""
    if cgroups.layout is not Layout.HYBRID:
        return None
    return Aside(str(cgroups.members), str(below(cgroups.members, group) / "cgroup.procs"))


def create_command(cgroups: Cgroups, group: PurePosixPath, command: list[str]) -> list[str]:
    """The runtime's create call, so that the sandbox's first process is in the cgroup2 group from its start.

    It is to be started as `aside` says.
    """
    folder = str(below(cgroups.members, group))
    match cgroups.layout:
        case Layout.UNIFIED:
            return command
        case Layout.LEGACY:
            return ["/bin/sh", "-c", _ENTER, folder, *command]
        case Layout.HYBRID:
            return ["/bin/sh", "-c", _ENTER_BY_DESCRIPTOR, "sh", *command]


def exec_command(
    cgroups: Cgroups, group: PurePosixPath, name: str, runtime: list[str], arguments: list[str]
) -> list[str]:
    """The runtime's exec call, so that the program is in group `name` below the sandbox's before it can fork."""
    if cgroups.layout is Layout.UNIFIED:
        return [*runtime, "exec", "--cgroup", name, *arguments]
    folder, call = str(below(cgroups.members, group) / name), [*runtime, "exec", *arguments]
    if cgroups.layout is Layout.LEGACY:
        return ["/bin/sh", "-c", _ENTER, folder, *call]
    return ["unshare", "--mount", "--", "/bin/sh", "-c", _ENTER_AND_HIDE, folder, str(cgroups.members), *call]
