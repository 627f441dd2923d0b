"""The oci provider with real mounts and processes, where things go wrong; the provider suite has what goes right."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.adapters.providers.oci.cgroups import Layout, find_layout
from sandbay.adapters.providers.oci.freeing import Freer
from sandbay.domain.allocation import Presence
from sandbay.domain.command import Command
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.ids import AllocationId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Stream
from tests.contracts.provider_harness import order_for, refused
from tests.providers.real_oci import ORDER, STEPS, Images, Installation, Ran, order
from tests.support.tar_entries import Entry, device, fifo, file, folder, symlink

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def here(images: Images) -> Iterator[Installation]:
    installation = Installation(images)
    yield installation
    installation.end()


def _node(here: Installation, step: str) -> None:
    """A node of its own process lives until `step`, and dies by kill -9."""
    here.provider.close()
    command = [sys.executable, "-m", "tests.providers.real_oci", str(here.images.folder), str(here.home), step]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": "src"}, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", STEPS)
def test_after_kill_9_at_any_step_everything_is_found_and_freed(here: Installation, step: str) -> None:
    here.images.plain()
    _node(here, step)
    here.provider = here.opened()
    listed = list(here.provider.list_allocations())
    assert listed == ([] if step in ("before-record", "destroy-done") else [ORDER])
    assert here.provider.presence(ORDER) in (
        {Presence.RUNNING} if step == "after-started" else {Presence.EXITED} if listed else {Presence.ABSENT}
    )
    here.provider.destroy(ORDER)
    assert list(here.provider.list_allocations()) == []
    here.provider.close()
    assert here.left() == {}


@pytest.mark.parametrize("step", ["after-record", "after-mounts", "after-runtime", "before-started"])
def test_a_start_that_died_can_be_repeated(here: Installation, step: str) -> None:
    here.images.plain()
    _node(here, step)
    here.provider = here.opened()
    here.provider.create(order(here.images))
    assert here.run(ORDER, "cat /etc/which").stdout == b"plain"


def test_a_node_that_comes_back_ends_what_nobody_waits_for_and_keeps_what_was_left_on_purpose(
    here: Installation,
) -> None:
    here.images.plain()
    _node(here, "running")
    assert {"sleep 4401", "sleep 4402"} <= set(here.processes(ORDER))
    here.provider = here.opened()
    assert here.provider.presence(ORDER) is Presence.RUNNING
    assert set(here.processes(ORDER)) == {"sleep 4401"}
    assert here.run(ORDER, "cat up").stdout == b"up\n"


def test_destroying_works_when_the_volatile_folder_is_lost(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    shutil.rmtree(here.run_folder / "runtime")
    assert here.provider.presence(allocation) is Presence.RUNNING
    here.provider.destroy(allocation)
    here.provider.close()
    assert here.left() == {}


def test_what_all_share_goes_with_the_next_start_where_a_kill_came_after_the_last_record(
    here: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocation = here.start(here.images.plain())
    with monkeypatch.context() as killed:
        killed.setattr(Freer, "drop_shared", lambda _: None)
        here.provider.destroy(allocation)
        killed.setattr(Freer, "tidy", lambda _: None)
        here.provider.close()
    assert here.left().keys() >= {"cgroups"}
    here.provider = here.opened()
    assert here.left() == {}


def test_what_lost_its_record_is_still_listed_and_freed(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    shutil.rmtree(here.home / "sandboxes" / allocation)
    assert list(here.provider.list_allocations()) == [allocation]
    here.provider.destroy(allocation)
    assert list(here.provider.list_allocations()) == []


def test_what_carries_another_label_is_not_touched(here: Installation) -> None:
    variant = here.images.plain()
    allocation = here.start(variant)
    here.provider.close()
    stranger = Installation(here.images, home=here.home)
    stranger.provider.close()
    stranger.label = here.label + "x"
    stranger.provider = stranger.opened()
    assert list(stranger.provider.list_allocations()) == []
    stranger.provider.destroy(allocation)
    with refused(Reason.IN_USE):
        stranger.provider.create(order_for(variant, allocation=allocation))
    stranger.provider.close()
    assert here.run(allocation, "cat /etc/which").stdout == b"plain"


def test_a_second_process_looks_and_changes_nothing(here: Installation) -> None:
    variant = here.images.plain()
    allocation = here.start(variant)
    waiting = threading.Thread(target=here.run, args=(allocation, "sleep 4406"))
    waiting.start()
    while "sleep 4406" not in here.processes(allocation):
        time.sleep(0.01)
    second = here.opened()
    assert [finding for finding in second.check() if not finding.ok] == []
    assert list(second.list_allocations()) == [allocation]
    with refused(Reason.HOST_UNFIT):
        second.create(order_for(variant))
    with refused(Reason.HOST_UNFIT):
        second.destroy(allocation)
    second.close()
    assert here.processes(allocation) == ["sleep 4406"]
    here.provider.destroy(allocation)
    waiting.join()


@pytest.mark.parametrize(
    "config, reason",
    [({"User": "nobody-here"}, Reason.USER_NOT_FOUND), ({"WorkingDir": "/etc/which"}, Reason.INVALID_WORKDIR)],
    ids=["user", "workdir"],
)
def test_a_start_that_the_image_forbids_frees_everything(
    here: Installation, config: dict[str, str], reason: Reason
) -> None:
    variant = here.images.variant(reason.value, [*_which()], **config)
    here.provider.probe(variant)
    refused_order = order_for(variant)
    with refused(reason):
        here.provider.create(refused_order)
    assert list(here.provider.list_allocations()) == []
    assert here.provider.presence(refused_order.allocation) is Presence.ABSENT
    here.provider.close()
    assert here.left() == {}


UNFIT: dict[str, list[Entry]] = {
    "a file": [file("workspace")],
    "a link": [symlink("workspace", "/srv"), folder("srv")],
    "a link out": [symlink("workspace", "../../../tmp")],
    "a link to nothing": [symlink("dev", "/nowhere")],
    "/proc": [symlink("proc", "/bin")],
    "/sys": [file("sys")],
    "/dev": [device("dev", 1, 3)],
    "a folder of users": [folder("etc/passwd")],
    "an endless group": [symlink("etc/group", "../group"), fifo("group")],
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_no_host_could_start_is_the_images_fault(here: Installation, what: str) -> None:
    """Told as the host's it would be tried again for ever, on every node."""
    with refused(Reason.NOT_AN_IMAGE):
        here.provider.probe(here.images.variant(f"unfit-{what.replace('/', '')}", UNFIT[what]))
    here.provider.probe(here.images.plain())
    here.provider.close()
    assert here.left() == {}


def test_a_start_that_the_host_breaks_frees_everything(images: Images) -> None:
    installation = Installation(images, spawner=None, init=Path("/bin/false"))
    variant = images.plain()
    with refused(Reason.START_FAILED):
        installation.provider.create(order_for(variant))
    with refused(Reason.START_FAILED):
        installation.provider.probe(variant)
    assert list(installation.provider.list_allocations()) == []
    assert [finding.name for finding in installation.provider.check() if not finding.ok] == ["init"]
    installation.end()


def test_a_fit_host_has_no_finding(here: Installation) -> None:
    assert [finding for finding in here.provider.check() if not finding.ok] == []


@pytest.mark.parametrize("runtime", ["/bin/false", "/no/such/runtime"])
def test_a_host_without_a_runtime_is_told(images: Images, runtime: str) -> None:
    installation = Installation(images, runtime=runtime)
    bad = {finding.name: finding for finding in installation.provider.check() if not finding.ok}
    assert set(bad) == {"runtime", "seccomp"}
    assert bad["runtime"].reason is Reason.HOST_UNFIT
    assert "install" in bad["runtime"].do
    with refused(Reason.START_FAILED):
        installation.provider.create(order_for(images.plain()))
    installation.end()


@pytest.mark.parametrize(
    "size", [SandboxSize(cpus=0), SandboxSize(memory=1024), SandboxSize(pids=1)], ids=["cpus", "memory", "pids"]
)
def test_limits_too_small_to_run_in_are_refused(here: Installation, size: SandboxSize) -> None:
    variant = here.images.plain()
    with refused(Reason.RESOURCE_UNSUPPORTED):
        here.provider.create(order_for(variant, size=size))


def test_device_nodes_of_an_image_are_dead(here: Installation) -> None:
    allocation = here.start(here.images.devices())
    for node in ("/blk", "/mem"):
        ran = here.run(allocation, f"head -c 1 {node}", user="0")
        assert (ran.exit.code != 0, ran.stdout) == (True, b"")


def test_an_image_whose_user_files_never_end_is_not_started(here: Installation) -> None:
    variant = here.images.variant("fifo", [Entry(b"etc/group", kind=b"6")])
    with refused(Reason.START_FAILED):
        here.start(variant)
    assert list(here.provider.list_allocations()) == []


@pytest.mark.parametrize(
    "line", ["mkfifo /etc/new", "dd if=/dev/null of=/etc/new bs=1 seek=1099511627776"], ids=["fifo", "huge"]
)
def test_user_files_that_never_end_neither_hang_nor_flood(here: Installation, line: str) -> None:
    allocation = here.start(here.images.plain())
    assert here.run(allocation, f"{line} && mv /etc/new /etc/passwd").exit.code == 0
    with refused(Reason.START_FAILED):
        here.run(allocation, "id -u", user="0")
    here.provider.files(allocation).write("/etc/passwd", [b"agent:x:7:7::/:\n"])
    assert here.run(allocation, "id -u", user="agent").stdout == b"7\n"


def test_a_fork_storm_ends_whole_at_the_time_out(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    one = "while :; do (sleep 0.01; true) & wait; done"
    storm = f"trap '' TERM HUP INT; setsid sh -c '{one}' & setsid sh -c '{one}' & ({one})"
    for _ in range(3):
        ran = here.run(allocation, storm, timeout=0.7)
        assert (ran.exit.timed_out, ran.exit.code) == (True, 137)
        assert here.processes(allocation) == []
    assert here.run(allocation, "echo on").stdout == b"on\n"


@pytest.mark.parametrize("after", [0.0, 0.01, 0.05])
def test_a_time_out_during_the_start_of_a_program_leaves_nothing(here: Installation, after: float) -> None:
    allocation = here.start(here.images.plain())
    for _ in range(3):
        assert here.run(allocation, "setsid sleep 4403 & sleep 4403", timeout=after).exit.timed_out
        assert here.processes(allocation) == []


@pytest.mark.parametrize(
    "line, code, says",
    [
        ("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done", 3, b"up\nbye\n"),
        ("trap '' TERM; echo up; while :; do sleep 0.05; done", 137, b"up\n"),
    ],
    ids=["heeds", "ignores"],
)
def test_ending_a_sandbox_asks_first(images: Images, line: str, code: int, says: bytes) -> None:
    here = Installation(images, grace=1.0)
    allocation = here.start(images.plain())
    up, ran = threading.Event(), []

    def command() -> None:
        heard = bytearray()

        def emit(stream: Stream, data: bytes) -> None:
            heard.extend(data if stream is Stream.STDOUT else b"")
            up.set()

        ended = here.provider.exec(allocation, Command(shell=line), emit=emit)
        ran.append(Ran(ended, bytes(heard), b""))

    thread = threading.Thread(target=command)
    thread.start()
    assert up.wait(30)
    here.provider.destroy(allocation)
    thread.join(30)
    assert [(each.exit.code, each.stdout) for each in ran] == [(code, says)]
    here.end()


def test_a_command_whose_end_nobody_saw_is_a_fault_and_the_next_one_runs(images: Images) -> None:
    here = Installation(images, spawner=None)
    allocation = here.start(images.plain())

    def lose_the_reaper() -> None:
        process = here.provider._reaping._process
        assert process is not None
        while "sleep 4404" not in here.processes(allocation):
            time.sleep(0.01)
        process.kill()

    thread = threading.Thread(target=lose_the_reaper)
    thread.start()
    with refused(Reason.INTERNAL):
        here.run(allocation, "sleep 4404")
    thread.join()
    assert here.processes(allocation) == []
    assert here.run(allocation, "echo on").stdout == b"on\n"
    here.end()


def test_no_descriptor_stays_open(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    here.run(allocation, "true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number
    for _ in range(5):
        here.run(allocation, "echo out; echo err >&2")
        here.provider.files(allocation).write("x", [b"x"])
        here.provider.files(allocation).list("/etc")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_a_program_has_only_its_standard_streams(here: Installation) -> None:
    allocation = here.start(here.images.plain())
    first = here.provider.booted(allocation).host_pid
    targets = [path.readlink() for path in Path(f"/proc/{first}/fd").iterdir()]
    # Beside them: what it waits on, and both ends of its socket.
    others = sorted(str(target).partition(":")[0] for target in targets if str(target) != "/dev/null")
    assert (len(targets), others) == (6, ["anon_inode", "socket", "socket"])
    # One more than three: the folder that ls itself has open.
    assert len(here.run(allocation, "ls /proc/self/fd").stdout.split()) == 4


def test_a_restricted_network_is_refused_and_a_disabled_one_is_the_loopback(here: Installation) -> None:
    variant = here.images.plain()
    with refused(Reason.NETWORK_UNSUPPORTED):
        here.provider.create(order_for(variant, network=Network.RESTRICTED))
    allocation = here.start(variant)
    assert here.run(allocation, "ip -o link | wc -l").stdout == b"1\n"
    assert here.run(allocation, "ping -c 1 -W 1 127.0.0.1 || nc -w 1 127.0.0.1 9; ip -o addr").stdout.count(b"lo") >= 1


def test_names_that_are_no_allocation_are_unknown(here: Installation) -> None:
    for name in ("../../etc", "", "a/b", "x\0"):
        here.provider.destroy(AllocationId(name))
        with refused(Reason.NOT_RUNNING):
            here.provider.booted(AllocationId(name))


def test_v1_alone_with_a_cgroup2_mount_of_our_own(images: Images, here: Installation) -> None:
    layout = find_layout(Path("/proc/self/mountinfo").read_text(), Path("/none"))
    if layout.layout is not Layout.HYBRID:
        pytest.skip(f"this machine's control groups are {layout.layout}; only hybrid can be made to look like v1")
    images.plain()
    here.provider.close()
    hidden = f'umount -l {layout.members} && exec "$@"'
    inner = [sys.executable, "-m", "tests.providers.legacy_oci", str(images.folder), str(here.home)]
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", hidden, "sh", *inner]
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "legacy\nran\nended\nfree\n")


def test_limits_are_those_of_cgroup2_where_that_is_all_there_is(here: Installation) -> None:
    layout = find_layout(Path("/proc/self/mountinfo").read_text(), Path("/none")).layout
    if layout is not Layout.UNIFIED:
        pytest.skip(f"this machine lacks control groups of version 2 alone: its layout is {layout}")
    allocation = here.start(here.images.plain())
    pid = here.provider.booted(allocation).host_pid
    group = Path("/sys/fs/cgroup") / Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::/")
    size = SandboxSize()
    assert (group / "memory.max").read_text().strip() == str(size.memory)
    assert (group / "pids.max").read_text().strip() == str(size.pids)
    assert (group / "cpu.max").read_text().split()[0] == str(int(100_000 * size.cpus))


def _which() -> list[Entry]:
    return [file("etc/which", b"which")]
