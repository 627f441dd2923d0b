"""The spawner: what it says, what is said to it, and what nobody in the sandbox can do with it."""

import contextlib
import errno
import os
import platform
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbay.adapters.providers.oci import spawner
from sandbay.adapters.providers.oci.bundle import INIT, Program
from sandbay.adapters.providers.oci.exec_by_spawner import Spawned, UnreachableError
from sandbay.adapters.providers.oci.pipes import Pipes
from sandbay.adapters.providers.oci.resident import PACKAGED, First, Resident
from sandbay.adapters.providers.oci.seccomp import compiled
from sandbay.adapters.providers.oci.spawner import BadAnswerError, Kind
from sandbay.adapters.providers.oci.spawners import reach
from sandbay.domain.allocation import Presence
from sandbay.domain.command import Command, User
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.ids import AllocationId
from sandbay.domain.reasons import Reason
from tests.contracts.provider_harness import refused
from tests.providers.real_oci import Images, Installation

ATTACK = Path(__file__).parents[1] / "support" / "spawner_attack.c"
ANYTHING = {"pidfd_getfd", "fd", "fd/0", "mem", "exe", "environ", "process_vm_readv", "seize", "attach"}
SECONDS = 30.0


# What it says.


@given(st.binary(max_size=16), st.integers(0, 2), st.sampled_from([0, socket.MSG_TRUNC, socket.MSG_CTRUNC]))
def test_whatever_comes_is_an_answer_of_its_kind_or_nothing(data: bytes, fds: int, flags: int) -> None:
    try:
        answer = spawner.read(data, list(range(100, 100 + fds)), flags)
    except BadAnswerError:
        return
    assert (len(data), flags) == (8, 0)
    assert fds == 0 or (answer.kind, fds, answer.terminal) == (Kind.STARTED, 1, 100)
    if answer.kind is Kind.ENDED:
        assert 0 <= spawner.exit_code(answer) <= 128 + 127
    elif answer.kind is not Kind.STARTED:
        assert spawner.not_started(answer).complaint


@given(st.sampled_from(Kind), st.integers(-(2**31), 2**31 - 1))
def test_an_end_is_an_exit_or_a_signal(kind: Kind, value: int) -> None:
    data = spawner._ANSWER.pack(kind, value)
    exited, signalled = value >= 0 and value & ~0xFF00 == 0, 0 < value & ~0x80 < 0x7F
    if value < 0 or (kind is Kind.ENDED and not (exited or signalled)):
        with pytest.raises(BadAnswerError):
            spawner.read(data, [])
    elif kind is Kind.ENDED:
        assert spawner.exit_code(spawner.read(data, [])) == (value >> 8 if exited else 128 + (value & 0x7F))


@pytest.mark.parametrize(
    "kind, number, meaning",
    [
        (Kind.NO_PROGRAM, errno.ENOENT, 127),
        (Kind.NO_PROGRAM, errno.EACCES, 126),
        (Kind.NO_PROGRAM, errno.ENOEXEC, 126),
        (Kind.NO_PROGRAM, errno.E2BIG, None),
        (Kind.NO_FOLDER, errno.EACCES, Reason.INVALID_WORKDIR),
        (Kind.NOT_SET_UP, errno.EAGAIN, None),
        (Kind.NOT_SET_UP, errno.ENOENT, None),
    ],
)
def test_what_it_means_that_nothing_started(kind: Kind, number: int, meaning: Reason | int | None) -> None:
    assert spawner.not_started(spawner.Answer(kind, number)).meaning == meaning


def _say(*said: tuple[int, int], terminal: bool = False, more: bytes = b"") -> Spawned:
    """A program of which a spawner says this, the first thing with a descriptor that is no terminal."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, open(os.devnull) as nothing:  # noqa: PTH123 - only its descriptor
        for number, answer in enumerate(said):
            data = spawner._ANSWER.pack(*answer) + more
            socket.send_fds(theirs, [data], [nothing.fileno()] if terminal and number == 0 else [])
    return Spawned(ours, Pipes(()))


@pytest.mark.parametrize(
    "said, how",
    [
        ([(Kind.ENDED, 0x100)], {}),
        ([(Kind.STARTED, 0), (Kind.STARTED, 0)], {}),
        ([(Kind.STARTED, 0), (9, 0)], {}),
        ([(Kind.STARTED, 0), (Kind.ENDED, 0x7F)], {}),
        ([(Kind.STARTED, 0), (Kind.ENDED, -1)], {}),
        ([(Kind.STARTED, 0)], {"more": b"x"}),
        ([(Kind.STARTED, 0)], {"terminal": True}),
        ([(Kind.NO_PROGRAM, 2)], {"terminal": True}),
    ],
)
def test_whoever_lies_in_its_place_gets_one_command_wrong_and_no_more(said: Any, how: Any) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number
    with contextlib.closing(_say(*said, **how)) as start:
        if said == [(Kind.ENDED, 0x100)]:
            assert start.started() == 1
        else:
            with refused(Reason.INTERNAL):
                assert start.started() is None
                start.ended()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_what_says_nothing_has_started_nothing() -> None:
    with contextlib.closing(_say()) as start, pytest.raises(UnreachableError):
        start.started()
    with contextlib.closing(_say((Kind.STARTED, 0))) as start:
        assert (start.started(), start.ended()) == (None, 137)


# What is said to it.


@dataclass
class Alone:
    """A spawner as an ordinary process, with the socket to it."""

    pid: int
    control: socket.socket
    folder: Path

    def ask(self, message: bytes, fds: Sequence[int]) -> None:
        if fds:
            socket.send_fds(self.control, [message], fds)
        else:
            self.control.send(message)

    def run(self, program: Program) -> list[spawner.Answer]:
        return self.send(spawner.document(program), spawner.request(program, len(spawner.document(program))))

    def send(self, document: bytes, message: bytes, fds: int = 6) -> list[spawner.Answer]:
        """All answers to a message that comes with `fds` descriptors, of the right kinds as far as it takes any."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        held = os.memfd_create("document")
        os.write(held, document)
        group, nothing = (os.open(os.devnull, os.O_RDWR) for _ in range(2))
        try:
            self.ask(message, ([theirs.fileno(), group, held] + [nothing] * 6)[:fds])
        finally:
            theirs.close()
            for fd in (held, group, nothing):
                os.close(fd)
        ours.settimeout(SECONDS)
        answers = []
        with ours:
            while (answer := spawner.receive(ours)) is not None:
                if answer.terminal is not None:
                    os.close(answer.terminal)
                answers.append(replace(answer, terminal=None))
        return answers

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208 - only their number

    @property
    def children(self) -> str:
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    if os.geteuid() != 0:
        pytest.skip("this machine lacks root")
    if not PACKAGED.exists():
        pytest.skip(f"there is no {PACKAGED.name}")
    file = tmp_path / "spawner"
    shutil.copy(PACKAGED, file)
    file.chmod(0o111)
    given = tmp_path / "filter"
    given.write_bytes(compiled(platform.machine()) or b"")
    with given.open("rb") as calls, subprocess.Popen([file], stdin=calls) as process:
        handle = os.pidfd_open(process.pid)
        try:
            with reach(handle, SECONDS) as control:
                yield Alone(process.pid, control, tmp_path)
            assert process.poll() is None, "it has not survived"
        finally:
            os.close(handle)
            process.kill()


def _touch(alone: Alone, name: str = "marker") -> Program:
    path = "/bin/busybox"
    return Program(path, ["touch", str(alone.folder / name)], {"A": "1"}, User(0, 0, (4, 5)), "/")


ENDED_WELL = [spawner.Answer(Kind.STARTED, 0), spawner.Answer(Kind.ENDED, 0)]


@pytest.mark.real
def test_a_request_is_done(alone: Alone) -> None:
    assert alone.run(_touch(alone)) == ENDED_WELL
    assert (alone.folder / "marker").exists()
    failed = alone.run(replace(_touch(alone), file="/no/such"))
    assert failed[:2] == [spawner.Answer(Kind.STARTED, 0), spawner.Answer(Kind.NO_PROGRAM, errno.ENOENT)]
    assert alone.run(replace(_touch(alone), workdir="/no/such"))[0] == spawner.Answer(Kind.NO_FOLDER, errno.ENOENT)


def _mutations(alone: Alone, chance: random.Random) -> Iterator[tuple[bytes, bytes, int]]:
    """Document, message and number of descriptors, each time with something wrong about them."""
    program = _touch(alone)
    good = spawner.document(program)
    message = spawner.request(program, len(good))
    fields = list(spawner._REQUEST.unpack(message))
    magic, size, uid, gid, groups, arguments, variables = range(7)
    while True:
        changed = list(fields)
        kind = chance.randrange(7)
        if kind == 0:
            yield good, chance.randbytes(chance.randrange(200)), chance.randrange(10)
        elif kind == 1:
            yield good, message, chance.choice([0, 1, 2, 4, 5, 7, 8, 9])
        elif kind == 2:
            yield good, message + chance.randbytes(chance.randrange(1, 9)), 6
        elif kind == 3:
            changed[chance.choice([magic, size, groups, arguments, variables])] ^= 1 << chance.randrange(32)
            yield good, spawner._REQUEST.pack(*changed), 6
        elif kind == 4:
            changed[chance.choice([uid, gid])] = 2**32 - 1
            yield good, spawner._REQUEST.pack(*changed), 6
        elif kind == 5:
            cut = good[: chance.randrange(len(good))]
            yield cut, spawner.request(program, len(cut)), 6
        else:
            more = good + chance.choice([b"\0", b"x", b"x\0"])
            yield more, spawner.request(program, len(more)), 6


@pytest.mark.real
def test_nothing_but_a_request_runs_anything_or_harms_it(alone: Alone) -> None:
    """Mutated requests: a program never runs, no process and no descriptor stays, and it goes on."""
    chance = random.Random(4)  # noqa: S311 - the same cases each time
    assert alone.run(_touch(alone, "first")) == ENDED_WELL
    before = alone.descriptors
    for (document, message, fds), _ in zip(_mutations(alone, chance), range(400), strict=False):
        kinds = {answer.kind for answer in alone.send(document, message, fds)}
        assert Kind.STARTED not in kinds, (document, message, fds)
    alone.ask(b"", [])
    assert alone.run(_touch(alone, "after")) == ENDED_WELL
    assert not (alone.folder / "marker").exists()
    assert (alone.descriptors, alone.children) == (before, "")


@pytest.mark.real
def test_nobody_waits_for_it_then_it_does_not_run(alone: Alone) -> None:
    program = _touch(alone)
    document = spawner.document(program)
    dead, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dead.close()
    held = os.memfd_create("document")
    os.write(held, document)
    group = os.open(os.devnull, os.O_RDWR)
    alone.ask(spawner.request(program, len(document)), [theirs.fileno(), group, held, group, group, group])
    theirs.close()
    os.close(held)
    os.close(group)
    assert alone.run(_touch(alone, "after")) == ENDED_WELL
    assert not (alone.folder / "marker").exists()


# In a sandbox.


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def here(images: Images) -> Iterator[Installation]:
    installation = Installation(images)
    yield installation
    installation.end()


def _again(here: Installation) -> None:
    """Another node takes over, as after a crash: its end of the sockets is closed either way."""
    here.provider.close()
    here.provider = here.opened()


@pytest.mark.real
def test_nobody_inside_can_take_its_socket_or_look_into_it(here: Installation, tmp_path: Path) -> None:
    if shutil.which("musl-gcc") is None:
        pytest.skip("this machine lacks musl-gcc")
    built = tmp_path / "attack"
    subprocess.run(["musl-gcc", "-static", "-O1", "-o", str(built), str(ATTACK)], check=True)
    allocation = here.start(here.images.plain())
    here.provider.files(allocation).write("attack", [built.read_bytes()])
    here.run(allocation, "chmod 755 attack; cp attack /tmp/attack", user="0")

    def tries(target: str, user: str = "0") -> set[str]:
        return set(here.run(allocation, f"/tmp/attack {target}", user=user).stdout.decode().split())

    # What works on a process that is not protected: the attempts are real ones.
    assert ANYTHING - {"attach"} <= tries("$(sleep 4410 >/dev/null 2>&1 & echo $!)")
    assert tries("1") == {"reached"}
    assert tries("1", user="agent") == {"reached"}
    assert here.run(allocation, f"cat {INIT}", user="0").exit.code == 1


@pytest.mark.real
def test_mount_tables_show_nothing_of_where_it_lies(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    table = here.run(allocation, "cat /proc/self/mountinfo").stdout.decode().splitlines()
    (line,) = [line for line in table if f" {INIT} " in line]
    assert line.split()[3] == "/" + Path(INIT).name
    assert "sandbay-real" not in line
    assert here.label not in line


@pytest.mark.real
def test_arguments_and_environment_of_any_size(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    large = {f"V{n}": "x" * 100_000 for n in range(8)}
    assert here.run(allocation, "echo ${#V0} ${#V7}", env=large).stdout == b"100000 100000\n"
    with refused(Reason.START_FAILED):
        here.run(allocation, "true", env={"V": "x" * 1_000_000})
    assert here.run(allocation, "echo on").stdout == b"on\n"


@pytest.mark.real
def test_one_place_among_its_processes_is_enough(here: Installation) -> None:
    allocation = here.start(here.images.plain(), size=SandboxSize(pids=16))
    # The place of the shell that fills all others is free again when it has failed.
    here.run(allocation, "while sleep 4411 & do :; done")
    assert _code(here, allocation, "true") == 0
    last = threading.Thread(target=_code, args=(here, allocation, "sleep", "4413"))
    last.start()
    assert _eventually(lambda: "sleep 4413" in here.processes(allocation))
    with refused(Reason.START_FAILED):
        _code(here, allocation, "true")
    here.provider.destroy(allocation)
    last.join()


def _code(here: Installation, allocation: AllocationId, *argv: str) -> int:
    return here.provider.exec(allocation, Command(argv=argv), emit=lambda *_: None).code


def _eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.real
@pytest.mark.parametrize("line, presence", [("kill 1", Presence.EXITED), ("kill -9 1; kill -HUP 1", Presence.RUNNING)])
def test_what_signals_from_inside_do_to_it(here: Installation, line: str, presence: Presence) -> None:
    allocation = here.start(here.images.plain())
    ran = here.run(allocation, f"{line}; sleep 1; echo on", user="0")
    assert ran.stdout == (b"on\n" if presence is Presence.RUNNING else b"")
    # Ending closes its stream first; only then is it gone for who looks.
    assert _eventually(lambda: here.provider.presence(allocation) is presence)


@pytest.mark.real
@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_a_node_that_comes_back_reaches_it_without_the_runtime(images: Images, runtime: str) -> None:
    if shutil.which(runtime) is None:
        pytest.skip(f"this machine lacks {runtime}")
    here = Installation(images, runtime=runtime)
    allocation = here.start(images.plain())
    here.settings = replace(here.settings, runtime="/bin/false")
    for _ in range(2):
        _again(here)
        ran = here.run(allocation, "cat /etc/which; exit 3")
        assert (ran.exit.code, ran.stdout) == (3, b"plain")
        assert here.processes(allocation) == []
    here.settings = replace(here.settings, runtime=runtime)
    _again(here)
    here.end()


@pytest.mark.real
@pytest.mark.parametrize("first, then", [("runc", "crun"), ("crun", "runc")])
def test_a_node_with_another_runtime_keeps_and_ends_it(images: Images, first: str, then: str) -> None:
    if shutil.which("crun") is None:
        pytest.skip("this machine lacks crun")
    here = Installation(images, runtime=first)
    allocation = here.start(images.plain())
    here.settings = replace(here.settings, runtime=then)
    _again(here)
    assert here.run(allocation, "cat /etc/which").stdout == b"plain"
    here.start(images.plain())
    here.end()


@pytest.mark.real
def test_a_sandbox_without_one_is_served_by_a_node_that_has_one(images: Images) -> None:
    here = Installation(images, spawner=None)
    allocation = here.start(images.plain())
    here.settings = replace(here.settings, spawner=PACKAGED)
    _again(here)
    assert here.run(allocation, "cat /etc/which").stdout == b"plain"
    assert here.processes(allocation) == []
    here.end()


def test_it_is_used_where_it_can_be_run_and_reached(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this machine lacks root")
    assert Resident(tmp_path, PACKAGED, Path("/bin/true")).fault is None
    for program in (None, tmp_path / "none", Path("/etc/passwd"), Path("/bin/true")):
        other = Resident(tmp_path, program, Path("/bin/true"))
        assert other.fault is not None
        assert other.place() == First(Path("/bin/true"))
