"""Paths and values for each control group layout, whatever this machine has."""

from pathlib import Path, PurePosixPath

import pytest

from sandbay.adapters.providers.oci.cgroups import (
    Cgroups,
    Layout,
    aside,
    create_command,
    enforceable,
    exec_command,
    find_layout,
    group_path,
    limit_files,
    resources,
    swap_file,
)
from sandbay.domain.declaration import Resource
from sandbay.domain.deployment import SandboxSize

OWN = Path("/run/sandbay/cgroup2")
V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
"""
UNIFIED_LINE = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
OWN_LINE = f"90 31 0:38 / {OWN} rw,relatime - cgroup2 cgroup2 rw\n"
V2 = "29 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
SIZE = SandboxSize(cpus=0.5, memory=64 * 1024**2 + 100, pids=64)
GROUP = group_path("ins_1", "alo_1")
MEMORY = str(64 * 1024**2)

HYBRID = find_layout(V1 + UNIFIED_LINE, OWN)
LEGACY = find_layout(V1, OWN)
UNIFIED = find_layout(V2, OWN)


@pytest.mark.parametrize(
    "mountinfo, layout, members",
    [
        (V2, Layout.UNIFIED, Path("/sys/fs/cgroup")),
        (V1 + UNIFIED_LINE, Layout.HYBRID, Path("/sys/fs/cgroup/unified")),
        (V1 + V2.replace("/sys/fs/cgroup ", "/mnt/two "), Layout.HYBRID, Path("/mnt/two")),
        (V1, Layout.LEGACY, OWN),
        (V1 + OWN_LINE, Layout.LEGACY, OWN),
    ],
    ids=["v2", "hybrid", "hybrid-elsewhere", "v1", "v1-with-our-own-mount"],
)
def test_the_layout_is_read_from_the_mount_table(mountinfo: str, layout: Layout, members: Path) -> None:
    found = find_layout(mountinfo, OWN)
    assert (found.layout, found.members, found.own_mount) == (layout, members, layout is Layout.LEGACY)


def test_a_hierarchy_of_two_controllers_is_one_root() -> None:
    assert HYBRID.v1["cpu"] == HYBRID.v1["cpuacct"] == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert [root.name for root in HYBRID.roots] == ["unified", "cpu,cpuacct", "memory", "pids", "systemd"]


def test_groups_are_named_by_the_installation() -> None:
    assert PurePosixPath("/sandbay-ins_1/alo_1") == GROUP


@pytest.mark.parametrize(
    "cgroups, controllers, expected",
    [
        (UNIFIED, "cpuset cpu io memory pids", {Resource.CPUS, Resource.MEMORY, Resource.PIDS}),
        (UNIFIED, "cpu pids", {Resource.CPUS, Resource.PIDS}),
        (HYBRID, "", {Resource.CPUS, Resource.MEMORY, Resource.PIDS}),
        (Cgroups(Layout.LEGACY, OWN, {"pids": Path("/p")}), "", {Resource.PIDS}),
    ],
)
def test_only_controllers_that_are_there_can_enforce(
    cgroups: Cgroups, controllers: str, expected: set[Resource]
) -> None:
    assert enforceable(cgroups, controllers) == expected


@pytest.mark.parametrize("cgroups", [HYBRID, LEGACY], ids=["hybrid", "v1"])
def test_v1_limits_stand_in_each_controllers_own_files(cgroups: Cgroups) -> None:
    assert limit_files(cgroups, GROUP, SIZE, swap=True) == {
        Path("/sys/fs/cgroup/memory/sandbay-ins_1/alo_1/memory.limit_in_bytes"): MEMORY,
        Path("/sys/fs/cgroup/memory/sandbay-ins_1/alo_1/memory.memsw.limit_in_bytes"): MEMORY,
        Path("/sys/fs/cgroup/cpu,cpuacct/sandbay-ins_1/alo_1/cpu.cfs_quota_us"): "50000",
        Path("/sys/fs/cgroup/cpu,cpuacct/sandbay-ins_1/alo_1/cpu.cfs_period_us"): "100000",
        Path("/sys/fs/cgroup/pids/sandbay-ins_1/alo_1/pids.max"): "64",
    }


def test_v2_limits_stand_in_one_folder() -> None:
    folder = Path("/sys/fs/cgroup/sandbay-ins_1/alo_1")
    without_swap = {
        folder / "memory.max": MEMORY,
        folder / "cpu.max": "50000 100000",
        folder / "pids.max": "64",
    }
    assert limit_files(UNIFIED, GROUP, SIZE, swap=False) == without_swap
    assert limit_files(UNIFIED, GROUP, SIZE, swap=True) == without_swap | {folder / "memory.swap.max": "0"}


def test_the_runtime_is_told_whole_pages_and_no_devices() -> None:
    told = resources(SIZE, swap=False)
    assert told == {
        "devices": [{"allow": False, "access": "rwm"}],
        "memory": {"limit": int(MEMORY)},
        "cpu": {"quota": 50_000, "period": 100_000},
        "pids": {"limit": 64},
    }
    assert resources(SIZE, swap=True)["memory"] == {"limit": int(MEMORY), "swap": int(MEMORY)}


@pytest.mark.parametrize(
    "cgroups, expected",
    [(UNIFIED, None), (HYBRID, Path("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"))],
    ids=["v2", "hybrid"],
)
def test_where_v1_shows_whether_it_accounts_for_swap(cgroups: Cgroups, expected: Path | None) -> None:
    assert swap_file(cgroups) == expected


def test_on_v2_the_runtime_places_sandbox_and_exec_itself() -> None:
    assert create_command(UNIFIED, GROUP, ["runc", "run", "x"]) == ["runc", "run", "x"]
    assert exec_command(UNIFIED, GROUP, "e1", ["runc"], ["--detach", "x"]) == [
        *("runc", "exec", "--cgroup", "e1", "--detach", "x"),
    ]


@pytest.mark.parametrize(
    "cgroups, folder",
    [(HYBRID, "/sys/fs/cgroup/unified/sandbay-ins_1/alo_1"), (LEGACY, f"{OWN}/sandbay-ins_1/alo_1")],
    ids=["hybrid", "v1"],
)
def test_on_v1_the_runtime_is_started_in_the_group(cgroups: Cgroups, folder: str) -> None:
    command = exec_command(cgroups, GROUP, "e1", ["runc"], ["x"])
    assert f"{folder}/e1" in command
    assert command[-3:] == ["runc", "exec", "x"]
    created = create_command(cgroups, GROUP, ["runc", "run", "x"])
    apart = aside(cgroups, GROUP)
    assert created[:2] == ["/bin/sh", "-c"]
    assert created[-3:] == ["runc", "run", "x"]
    assert folder in created if apart is None else apart.procs == f"{folder}/cgroup.procs"


def test_on_hybrid_the_hosts_cgroup2_is_hidden_from_the_runtime_that_creates() -> None:
    apart = aside(HYBRID, GROUP)
    assert apart is not None
    assert apart.hidden == "/sys/fs/cgroup/unified"
    assert f">&{apart.number} " in create_command(HYBRID, GROUP, ["runc"])[2]
    assert aside(LEGACY, GROUP) is None
    assert aside(UNIFIED, GROUP) is None


def test_on_hybrid_it_is_hidden_from_an_exec_as_well() -> None:
    """A runtime that sees it moves the program out of the group that it was started in."""
    command = exec_command(HYBRID, GROUP, "e1", ["crun"], ["x"])
    assert command[:2] == ["unshare", "--mount"]
    assert "/sys/fs/cgroup/unified" in command
    assert "unshare" not in exec_command(LEGACY, GROUP, "e1", ["runc"], ["x"])
