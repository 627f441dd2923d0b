"""The runtime's bundle, as data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.providers.oci.bundle import CAPABILITIES, INIT, Parts, Program, process, spec
from sandbay.adapters.providers.oci.cgroups import group_path
from sandbay.adapters.providers.oci.seccomp import profile
from sandbay.domain.command import User

PARTS = Parts(
    hostname="ses_1",
    rootfs=Path("/run/x/rootfs"),
    workspace=Path("/home/x/workspace"),
    init=Path("/run/x/init"),
    spawns=True,
    base=0x70010000,
    group=group_path("ins_1", "alo_1"),
    open_files=20_000,
    resources={"pids": {"limit": 64}},
    seccomp=profile("x86_64"),
)
REAPED = replace(PARTS, spawns=False)


def _document() -> Any:
    return json.loads(json.dumps(spec(PARTS)))


@pytest.mark.parametrize(
    "parts, args, held",
    [
        (PARTS, [INIT], {key: list(CAPABILITIES) for key in ("bounding", "effective", "permitted")}),
        (REAPED, [INIT, "-P"], {}),
    ],
)
def test_the_first_process_holds_only_what_it_hands_on(parts: Parts, args: list[str], held: object) -> None:
    first: Any = spec(parts)["process"]
    assert (first["args"], first["capabilities"]) == (args, held)
    assert first["noNewPrivileges"] is True
    assert first["env"] == []


def test_root_inside_is_the_first_id_of_the_range() -> None:
    linux = _document()["linux"]
    assert linux["uidMappings"] == linux["gidMappings"] == [{"containerID": 0, "hostID": 0x70010000, "size": 65536}]


def test_every_namespace_is_new() -> None:
    namespaces = _document()["linux"]["namespaces"]
    assert {each["type"] for each in namespaces} == {"pid", "ipc", "uts", "mount", "network", "user", "cgroup"}
    assert not any("path" in each for each in namespaces)


def test_workspace_and_init_are_mounts_of_their_own() -> None:
    mounts = {each["destination"]: each for each in _document()["mounts"]}
    assert mounts["/workspace"]["source"] == "/home/x/workspace"
    assert {"bind", "rw", "nodev", "nosuid"} == set(mounts["/workspace"]["options"])
    assert {"bind", "ro", "nodev", "nosuid"} == set(mounts[INIT]["options"])
    assert "size=67108864" in mounts["/dev/shm"]["options"]
    assert list(mounts).index("/dev") < list(mounts).index(INIT)


def test_nothing_of_the_host_is_mounted_but_workspace_and_init() -> None:
    binds = [each["destination"] for each in _document()["mounts"] if each["type"] == "bind"]
    assert sorted(binds) == sorted(["/workspace", INIT])


@pytest.mark.parametrize("uid, held", [(0, set(CAPABILITIES)), (1000, set())])
def test_only_root_holds_capabilities(uid: int, held: set[str]) -> None:
    document: Any = process(Program("/x", ["x"], {"A": "1"}, User(uid, 7, (8, 9)), "/w"), open_files=20_000)
    assert set(document["capabilities"]["effective"]) == set(document["capabilities"]["permitted"]) == held
    assert set(document["capabilities"]["bounding"]) == set(CAPABILITIES)
    assert document["user"] == {"uid": uid, "gid": 7, "additionalGids": [8, 9]}
    assert (document["env"], document["cwd"]) == (["A=1"], "/w")


def test_no_capability_that_reaches_beyond_files_and_processes() -> None:
    beyond = {"SYS_ADMIN", "NET_ADMIN", "NET_RAW", "MKNOD", "AUDIT_WRITE", "SYS_PTRACE", "SYS_MODULE", "BPF"}
    assert not {name.removeprefix("CAP_") for name in CAPABILITIES} & beyond


@pytest.mark.parametrize("available, given", [(20_000, 20_000), (2**40, 65_536)])
def test_open_files_are_bounded_by_what_this_process_may_give(available: int, given: int) -> None:
    document: Any = process(Program("/x", ["x"], {}, User(0, 0), "/"), open_files=available)
    assert {"type": "RLIMIT_NOFILE", "soft": given, "hard": given} in document["rlimits"]


def test_the_runtime_installs_the_filter_where_the_first_process_does_not() -> None:
    assert "seccomp" not in _document()["linux"]
    reaped: Any = spec(REAPED)
    assert reaped["linux"]["seccomp"] == profile("x86_64")
