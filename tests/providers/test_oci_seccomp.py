"""The default filter: what our own filter decides is what the profile says, and what a sandbox gets, either way."""

import errno
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.resident import PACKAGED
from sandbay.adapters.providers.oci.seccomp import RULES, compiled, profile
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.adapters.providers.oci.spawners import Spawners
from sandbay.domain.command import Command
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId
from sandbay.domain.reasons import Reason
from sandbay.engine.syscalls import NEWEST, numbers
from tests.contracts.provider_harness import refused
from tests.providers.real_oci import Images, Installation
from tests.support.bpf import ALLOW, KILL, judge

AUDIT = {
    "SCMP_ARCH_X86_64": ("x86_64", 0xC000003E),
    "SCMP_ARCH_X86": ("i386", 0x40000003),
    "SCMP_ARCH_AARCH64": ("aarch64", 0xC00000B7),
    "SCMP_ARCH_ARM": ("arm", 0x40000028),
}
MACHINES = ("x86_64", "aarch64")
FORBIDDEN = (
    *("mount", "umount2", "unshare", "setns", "pivot_root", "open_tree", "move_mount", "fsopen", "mount_setattr"),
    *("bpf", "perf_event_open", "init_module", "finit_module", "kexec_load", "keyctl", "add_key", "request_key"),
    *("userfaultfd", "io_uring_setup", "open_by_handle_at", "reboot", "swapon", "settimeofday", "clock_settime"),
    *("acct", "quotactl", "iopl", "ioperm", "syslog", "lookup_dcookie", "clone", "clone3", "personality", "socket"),
)
NEW_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
AF_UNIX, AF_ALG, AF_VSOCK = 1, 38, 40
RAW_CALLS = Path(__file__).parents[1] / "support" / "raw_calls.c"
SPAWNER_SOURCE = Path(__file__).parents[2] / "native" / "spawner.c"


# What is decided.


def read(document: Mapping[str, Any], name: str | None, number: int, arguments: Sequence[int]) -> int | str:
    """The OCI document, read as its specification says; above what it knows of, calls are missing."""
    for entry in document["syscalls"]:
        holds = all(arguments[each["index"]] & each["value"] == each["valueTwo"] for each in entry.get("args", ()))
        if name in entry["names"] and holds:
            return ALLOW if entry["action"] == "SCMP_ACT_ALLOW" else int(entry["errnoRet"])
    known = name is not None or number <= NEWEST
    return int(document["defaultErrnoRet"]) if known else errno.ENOSYS


def interesting() -> Sequence[int]:
    """First arguments: what the profile names, one more and less, each bit alone, and all that with bits above 32."""
    named = {part for rule in RULES for when in rule.when for part in (when.value, when.mask)}
    near = {value + step for value in named for step in (-1, 0, 1) if value + step >= 0}
    low = sorted({*near, *range(64), *(1 << bit for bit in range(32)), *NEW_NAMESPACES})
    return [*low, *(value | 1 << 32 for value in low), *(value | 0xFFFFFFFF << 32 for value in low if value < 2**32)]


@pytest.mark.parametrize("machine", MACHINES)
def test_our_filter_decides_as_the_profile_says(machine: str) -> None:
    document = profile(machine)
    program = compiled(machine)
    assert program is not None
    conditional = {name for rule in RULES if rule.when for name in rule.names}
    values = interesting()
    for named in document["architectures"]:  # type: ignore[attr-defined]
        architecture, audit = AUDIT[named]
        names = {number: name for name, number in numbers(architecture).items()}
        for number in {*range(1024), *names, *range(0x40000000, 0x40000400), 0x7FFFFFFF, 0xFFFFFFFF}:
            name = names.get(number)
            for value in values if name in conditional else (0, 2**64 - 1):
                arguments = [value] * 6
                assert judge(program, audit, number, arguments) == read(document, name, number, arguments), (
                    architecture,
                    name or number,
                    hex(value),
                )


@pytest.mark.parametrize("machine", MACHINES)
def test_programs_of_other_processors_are_killed(machine: str) -> None:
    program = compiled(machine)
    assert program is not None
    own = {AUDIT[named][1] for named in profile(machine)["architectures"]}  # type: ignore[attr-defined]
    for audit in {*(audit for _, audit in AUDIT.values()), 0, 0xC00000F3} - own:
        assert {judge(program, audit, number) for number in range(NEWEST + 2)} == {KILL}


@pytest.mark.parametrize("machine", MACHINES)
def test_it_is_short(machine: str) -> None:
    """The kernel takes 4096; it runs through each of a sandbox's calls."""
    assert len(compiled(machine) or b"") // 8 < 600


def test_a_machine_without_numbers_has_none() -> None:
    assert compiled("riscv64") is None
    assert compiled("pdp11") is None


def test_names_of_the_profile_are_calls_that_exist() -> None:
    known = {name for named, _ in AUDIT.values() for name in numbers(named)}
    unknown = {name for rule in RULES for name in rule.names} - known
    assert unknown == {"riscv_hwprobe", "riscv_flush_icache", "sync_file_range2"}  # of other processors


@pytest.mark.parametrize("name", FORBIDDEN)
def test_calls_that_steer_the_host_are_not_allowed_outright(name: str) -> None:
    assert [rule for rule in RULES if name in rule.names and not rule.when and not rule.error] == []


def test_only_what_no_namespace_divides_and_what_nobody_has_is_refused_of_sockets() -> None:
    document = profile("x86_64")
    refused_families = {family for family in range(46) if read(document, "socket", 41, [family]) != ALLOW}
    assert refused_families == {AF_ALG, AF_VSOCK}


@pytest.mark.parametrize("flag", NEW_NAMESPACES)
def test_clone_makes_no_namespace(flag: int) -> None:
    document = profile("x86_64")
    assert read(document, "clone", 56, [flag | 17]) == errno.EPERM
    assert read(document, "clone", 56, [17]) == ALLOW


# What a sandbox gets.


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def raw_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("musl-gcc") is None:
        pytest.skip("this machine lacks musl-gcc")
    built = tmp_path_factory.mktemp("calls") / "raw_calls"
    subprocess.run(["musl-gcc", "-static", "-O1", "-o", str(built), str(RAW_CALLS)], check=True)
    return built


@pytest.fixture(scope="module", params=[PACKAGED, None], ids=["by-spawner", "by-runtime"])
def either(request: pytest.FixtureRequest, images: Images) -> Iterator[Installation]:
    installation = Installation(images, spawner=request.param)
    yield installation
    installation.end()


@pytest.fixture
def here(images: Images) -> Iterator[Installation]:
    installation = Installation(images)
    yield installation
    installation.end()


def _cases() -> Sequence[tuple[str, int]]:
    """A call and what it comes to; what is allowed is asked for so that it can be done by anybody."""
    number = numbers(platform.machine())
    fork = 17  # SIGCHLD
    return [
        (f"{number['getpid']}", 0),
        (f"{number['clone3']}", errno.ENOSYS),
        *((f"{number['clone']}:{flag | fork:#x}", errno.EPERM) for flag in NEW_NAMESPACES),
        *((f"{number['clone']}:{flag | fork | 1 << 32:#x}", errno.EPERM) for flag in NEW_NAMESPACES),
        (f"{number['clone']}:{fork}", 0),
        (f"{number['personality']}:0xffffffff", 0),
        (f"{number['personality']}:0x40000", errno.EPERM),
        (f"{number['socket']}:{AF_UNIX}:1", 0),
        *((f"{number['socket']}:{family}:5", errno.EPERM) for family in (AF_ALG, AF_VSOCK)),
        *((f"{number['socket']}:{1 << 32 | family:#x}:5", errno.EPERM) for family in (AF_ALG, AF_VSOCK)),
        ("425", errno.EPERM),  # io_uring_setup
        ("428", errno.EPERM),  # open_tree
        ("430", errno.EPERM),  # fsopen
        ("467", errno.ENOSYS),  # open_tree_attr, newer than all that the profile knows
    ]


@pytest.mark.real
def test_calls_inside_come_to_what_the_profile_says(either: Installation, raw_calls: Path) -> None:
    allocation = _with_program(either, raw_calls)
    for line, right in _cases():
        assert _errors(either, allocation, line) == [right], line


@pytest.mark.real
def test_programs_of_32_bits_are_judged_by_their_own_numbers(either: Installation, raw_calls: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("this machine has no programs of 32 bits that this test could make")
    narrow = numbers("i386")
    if subprocess.run([raw_calls, f"i{narrow['getpid']}"], check=False, capture_output=True).returncode:
        pytest.skip("this machine's kernel runs no programs of 32 bits")
    allocation = _with_program(either, raw_calls)
    # 21 and 310 are mount and unshare there, and access and an unused number here.
    asked = [f"i{narrow['getpid']}", "i21", "i310", f"i{narrow['clone3']}", f"i{narrow['socket']}:{AF_ALG}:5"]
    assert _errors(either, allocation, *asked) == [0, errno.EPERM, errno.EPERM, errno.ENOSYS, errno.EPERM]


@pytest.mark.real
def test_x32_gives_nothing(either: Installation, raw_calls: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("only x86_64 has x32")
    allocation = _with_program(either, raw_calls)
    ran = either.run(allocation, f"/tmp/raw_calls {0x40000000 + numbers('x86_64')['getpid']}")
    assert ran.stdout in (b"", f"{errno.ENOSYS}\n".encode())  # the runtime's filter kills


def _with_program(here: Installation, program: Path) -> AllocationId:
    allocation = here.start(here.images.plain())
    here.provider.files(allocation).write("raw_calls", [program.read_bytes()])
    assert here.run(allocation, "cp raw_calls /tmp/raw_calls && chmod 755 /tmp/raw_calls", user="0").exit.code == 0
    return allocation


def _errors(here: Installation, allocation: AllocationId, *calls: str) -> list[int]:
    return [int(line) for line in here.run(allocation, f"/tmp/raw_calls {' '.join(calls)}", user="0").stdout.split()]


@pytest.mark.real
def test_the_runtime_is_told_of_no_filter_where_the_first_process_has_it(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    config = here.provider._places(allocation).sandbox.config.read_text()
    assert '"seccomp"' not in config
    for line in ("cat /proc/1/status", "cat /proc/self/status"):
        status = here.run(allocation, line, user="0").stdout.decode().split("\n")
        assert {"Seccomp:\t2", "Seccomp_filters:\t1", "NoNewPrivs:\t1"} <= set(status)


# Without a filter nothing runs.


@pytest.mark.real
def test_a_filter_that_was_not_handed_over_is_noticed(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Reaping.call
    monkeypatch.setattr(Reaping, "call", lambda *given: call(*given[:-1]))
    with pytest.raises(RefusedError) as raised:
        here.start(here.images.plain())
    refusal = raised.value.refusal
    assert (refusal.reason, refusal.details["code"]) == (Reason.START_FAILED, 2)
    assert "filter" in str(refusal.details["says"])
    assert here.provider.list_allocations() == []


@pytest.mark.real
@pytest.mark.parametrize(
    "given", [b"", b"\x06\0\0\0", b"\x06\0\0\0\0\0\xff\x7f\0", b"\x15\0\x05\x05\0\0\0\0", b"\0" * 8]
)
def test_what_is_no_filter_is_none(given: bytes, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_bytes(given)
    with file.open("rb") as calls:
        assert subprocess.run([PACKAGED], stdin=calls, check=False, timeout=30).returncode == 2
    assert subprocess.run([PACKAGED], input=b"", check=False, timeout=30).returncode == 2


@pytest.mark.real
def test_a_first_process_that_installs_none_is_noticed(images: Images, tmp_path: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("this machine lacks musl-gcc")
    source, planted = SPAWNER_SOURCE.read_text(), tmp_path / "spawner"
    (line,) = [line for line in source.splitlines() if "PR_SET_SECCOMP" in line]
    (tmp_path / "spawner.c").write_text(source.replace(line, ""))
    subprocess.run(["musl-gcc", "-static", "-O1", "-o", str(planted), str(tmp_path / "spawner.c")], check=True)
    here = Installation(images, spawner=planted)
    with pytest.raises(RefusedError) as raised:
        here.start(images.plain())
    details = raised.value.refusal.details
    assert (details["field"], details["wanted"], details["found"]) == ("Seccomp", "2", "0")
    assert here.provider.list_allocations() == []
    here.end()


@pytest.mark.real
def test_nobody_else_starts_programs_where_only_the_first_process_has_it(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocation = here.start(here.images.plain())
    touch = Command(argv=("touch", "/tmp/ran"))
    with monkeypatch.context() as planted:
        planted.setattr(Spawners, "of", lambda *_: None)
        with refused(Reason.START_FAILED):
            here.provider.exec(allocation, touch, emit=lambda *_: None)
        # The fault that this is about: the runtime would do it, and filter nothing.
        planted.setattr("sandbay.adapters.providers.oci.exec_by_runtime._has_filter", lambda _: True)
        assert b"Seccomp:\t0" in here.run(allocation, "cat /proc/self/status").stdout
    assert here.run(allocation, "ls /tmp/ran").exit.code != 0
    assert here.run(allocation, "echo on").stdout == b"on\n"


@pytest.mark.real
@pytest.mark.parametrize("first, then", [(PACKAGED, None), (None, PACKAGED)], ids=["loses-it", "gets-it"])
def test_a_node_with_another_choice_runs_nothing_unfiltered(
    images: Images, first: Path | None, then: Path | None
) -> None:
    here = Installation(images, spawner=first)
    old = here.start(images.plain())
    here.provider.close()
    here.settings = OciSettings(spawner=then)
    here.provider = here.opened()
    new = here.start(images.plain())
    for allocation in (old, new):
        assert b"Seccomp:\t2" in here.run(allocation, "cat /proc/self/status").stdout
    here.end()
