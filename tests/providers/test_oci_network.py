"""What a sandbox with a network reaches, tried from inside it against listeners that are known to answer."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog.testing

from sandbay.adapters.providers.oci import network, network_rules
from sandbay.domain.declaration import Network
from sandbay.domain.ids import AllocationId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Reach
from tests.contracts.provider_harness import order_for, refused
from tests.providers.real_oci import CHANGE_STEPS, NETWORK_STEPS, ORDER, Images, Installation, order
from tests.support import neighbours as near
from tests.support.tar_entries import folder, symlink

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
IPV6_LINK_LOCAL = "fe80:"


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def here(images: Images) -> Iterator[Installation]:
    installation = Installation(images)
    try:
        _able_or_skip(installation)
        yield installation
    finally:
        installation.end()


@pytest.fixture(scope="module")
def beside() -> Iterator[str]:
    if missing := near.lacking():
        pytest.skip("this machine lacks " + ", ".join(missing))
    with near.neighbours() as namespace:
        yield namespace


def _able_or_skip(installation: Installation) -> None:
    (finding,) = [each for each in installation.provider.check() if each.name == "network"]
    assert not finding.fatal
    assert finding.ok == (Network.ENABLED in installation.provider.declaration.networks)
    if not finding.ok:
        pytest.skip(finding.says)


def _reaches(here: Installation, allocation: AllocationId, address: str, port: int = near.PORT) -> bool:
    return here.run(allocation, f"nc -w 2 {address} {port} </dev/null").stdout == b"here\n"


def _address(here: Installation, allocation: AllocationId) -> str:
    line = here.run(allocation, "ip -o -4 addr show dev eth0").stdout.decode()
    return line.split()[3].partition("/")[0]


@contextlib.contextmanager
def _listening_everywhere() -> Iterator[int]:
    """A listener on every address of this machine; its port."""
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    with _serving(server):
        yield server.getsockname()[1]


@contextlib.contextmanager
def _answering(address: str, port: int) -> Iterator[None]:
    with _serving(socket.create_server((address, port))):
        yield


@contextlib.contextmanager
def _serving(server: socket.socket) -> Iterator[None]:
    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as caller:
                    caller.sendall(b"here\n")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def _addresses_of_this_machine(bridge: str) -> set[str]:
    """Those of other tests' bridges and neighbours, which come and go, left out."""
    said = json.loads(subprocess.run(["ip", "-json", "address"], capture_output=True, check=True).stdout)
    ours = [each for each in said if each["ifname"] == bridge or not each["ifname"].startswith(("sb", "veth"))]
    return {near.OURS, *(each["local"] for interface in ours for each in interface["addr_info"])}


def test_enabled_reaches_the_outside_and_disabled_does_not(here: Installation, beside: str) -> None:
    assert near.answers(near.PUBLIC)
    plain = here.images.plain()
    with_network = here.start(plain, network=Network.ENABLED)
    without = here.start(plain)
    assert _reaches(here, with_network, near.PUBLIC)
    assert not _reaches(here, without, near.PUBLIC)


def test_what_is_denied_answers_this_machine_and_no_sandbox(here: Installation, beside: str) -> None:
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    for address in (*near.PRIVATE, near.LINK_LOCAL, *near.IPV6):
        assert near.answers(address), address
        assert not _reaches(here, allocation, address), address
    assert _reaches(here, allocation, near.PUBLIC)


def test_no_address_of_the_host_is_reached(here: Installation, beside: str) -> None:
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    gateway = here.run(allocation, "ip route show default").stdout.decode().split()[2]
    with _listening_everywhere() as port:
        addresses = _addresses_of_this_machine(network_rules.net_name(f"{here.label} {here.home}"))
        assert {gateway, near.OURS} < addresses
        for address in sorted(addresses):
            if IPV6_LINK_LOCAL not in address:
                assert near.answers(address, port), address
            scoped = f"{address}%eth0" if IPV6_LINK_LOCAL in address else address
            assert not _reaches(here, allocation, scoped, port), address


def test_sandboxes_do_not_reach_each_other(here: Installation, beside: str) -> None:
    plain = here.images.plain()
    one, two = (here.start(plain, network=Network.ENABLED) for _ in range(2))
    serving = "nc -ll -p 7178 -e echo here >/dev/null 2>&1 & sleep 0.3"
    address = _address(here, one)
    here.run(one, serving)
    assert _reaches(here, one, address, 7178)
    assert not _reaches(here, two, address, 7178)
    # Nor does anybody outside begin a connection to a sandbox.
    command = ["nsenter", f"--net=/run/netns/{beside}", "--", "busybox", "nc", "-w", "2", address, "7178"]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout == b""
    # Denied twice: by the bridge, even when somebody flushes the rules, and by the rules from the first packet on.
    name = network_rules.net_name(f"{here.label} {here.home}")
    rules = subprocess.run(["nft", "list", "table", "bridge", name], capture_output=True, check=True).stdout
    for family in network_rules.FAMILIES:  # some kernels ask the other family about what passes a bridge, too
        subprocess.run(["nft", "delete", "table", family, name], check=True)
    assert not _reaches(here, two, address, 7178)
    for port in _ports(here):
        subprocess.run(["bridge", "link", "set", "dev", port.name, "isolated", "off"], check=True)
    # The neighbour's last question for this address went unanswered; it asks again a moment later.
    assert any(_reaches(here, two, address, 7178) for _ in range(10))
    subprocess.run(["nft", "-f", "-"], input=rules, check=True)
    assert not _reaches(here, two, address, 7178)


def test_sandboxes_of_two_installations_do_not_reach_each_other(images: Images, here: Installation) -> None:
    other = Installation(images)
    try:
        one = here.start(images.plain(), network=Network.ENABLED)
        two = other.start(images.plain(), network=Network.ENABLED)
        here.run(one, "nc -ll -p 7178 -e echo here >/dev/null 2>&1 & sleep 0.3")
        assert _address(here, one).rpartition(".")[0] != _address(other, two).rpartition(".")[0]
        assert not _reaches(other, two, _address(here, one), 7178)
        other.provider.destroy(two)
        assert other.left() == {}
        assert _reaches(here, one, _address(here, one), 7178)
    finally:
        other.end()


def test_the_nameserver_is_reached_for_names_only(
    here: Installation, beside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"nameserver 127.0.0.53\nnameserver ::1\nnameserver {near.PRIVATE[0]}\n")
    monkeypatch.setattr(network, "_RESOLVERS", (resolver,))
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    assert here.run(allocation, "cat /etc/resolv.conf").stdout.decode() == f"nameserver {near.PRIVATE[0]}\n"
    assert _reaches(here, allocation, near.PRIVATE[0], near.NAMES)
    assert not _reaches(here, allocation, near.PRIVATE[0])
    assert not _reaches(here, allocation, near.PRIVATE[1], near.NAMES)


def test_hosts_and_resolv_conf_are_there_with_a_network_only(here: Installation) -> None:
    plain = here.images.plain()
    with_network = here.start(plain, network=Network.ENABLED)
    without = here.start(plain)
    hostname = here.run(with_network, "hostname").stdout.decode().strip()
    hosts = here.run(with_network, "cat /etc/hosts").stdout.decode().splitlines()
    assert hosts[0] == "127.0.0.1\tlocalhost"
    assert hosts[-1] == f"{_address(here, with_network)}\t{hostname}"
    mounted = "grep -c ' /etc/' /proc/self/mounts"
    assert here.run(with_network, mounted).stdout == b"2\n"
    assert here.run(without, mounted).stdout == b"0\n"
    assert hostname not in here.run(without, "cat /etc/hosts").stdout.decode()
    assert here.run(with_network, "echo x >>/etc/hosts").exit.code != 0


def test_root_inside_changes_nothing_of_its_network(here: Installation, beside: str) -> None:
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    for line in (
        "ip addr add 10.177.0.9/24 dev eth0",
        "ip route add 10.177.0.0/24 dev eth0",
        "ip link set dev eth0 down",
        "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6",
    ):
        assert here.run(allocation, line).exit.code != 0, line
    assert here.run(allocation, "ip -o -6 addr show dev eth0").stdout == b""
    assert _reaches(here, allocation, near.PUBLIC)


@pytest.mark.parametrize("name", ["link", "folder"])
def test_an_image_cannot_lead_the_files_elsewhere(here: Installation, name: str) -> None:
    """A link that leads out of the sandbox makes a file inside it; a folder in the way is a start that fails."""
    marked = Path("/run") / f"{here.home.name}-resolv"
    entry = symlink("etc/resolv.conf", f"../../../..{marked}") if name == "link" else folder("etc/resolv.conf")
    variant = here.images.variant(f"resolv-{name}", [entry])
    if name == "folder":
        with refused(Reason.START_FAILED):
            here.start(variant, network=Network.ENABLED)
    else:
        here.start(variant, network=Network.ENABLED)
    assert not marked.exists()


def _dies(here: Installation, step: str) -> None:
    """Let a node of its own work on this installation until it is killed at a step, and take over."""
    here.images.plain()
    here.provider.close()
    command = [sys.executable, "-m", "tests.providers.real_oci", str(here.images.folder), str(here.home)]
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run([*command, step], cwd=ROOT, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    here.provider = here.opened()


def _ports(here: Installation) -> list[Path]:
    bridge = Path("/sys/class/net") / network_rules.net_name(f"{here.label} {here.home}")
    return list(bridge.glob("brif/*"))


@pytest.mark.slow
@pytest.mark.parametrize("step", NETWORK_STEPS)
def test_after_kill_9_at_any_step_the_network_is_found_and_freed(here: Installation, step: str) -> None:
    _dies(here, f"network:{step}")
    assert list(here.provider.list_allocations()) == [ORDER]
    here.provider.destroy(ORDER)
    assert here.left() == {}
    assert not (here.run_folder / "network").exists()
    here.provider.create(order(here.images, Network.ENABLED))
    assert _address(here, ORDER)


def _heard(here: Installation, allocation: AllocationId) -> int:
    return int(here.run(allocation, "wc -c <heard").stdout)


def _hears(here: Installation, allocation: AllocationId, ticks: int) -> None:
    """Return when it has heard so many more."""
    wanted = _heard(here, allocation) + ticks * len(b"tick\n")
    while _heard(here, allocation) < wanted:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("step", CHANGE_STEPS)
def test_after_kill_9_within_a_change_it_can_be_made_again(here: Installation, beside: str, step: str) -> None:
    _dies(here, f"change:{step}")
    for mode in (Network.DISABLED, Network.ENABLED, Network.DISABLED):
        here.provider.set_network(ORDER, mode)
        assert _reaches(here, ORDER, near.PUBLIC) == (mode is Network.ENABLED)
        assert not _reaches(here, ORDER, near.PRIVATE[0])
        assert (_ports(here) != []) == (mode is Network.ENABLED)
    assert here.left().keys() <= {"processes", "mounts", "cgroups"}  # its last network took everything along
    here.provider.set_network(ORDER, Network.ENABLED)
    here.provider.destroy(ORDER)
    assert here.left() == {}


def test_losing_the_network_cuts_what_is_open_and_what_runs_in_the_background(here: Installation, beside: str) -> None:
    plain = here.images.plain()
    one = here.start(plain, network=Network.DISABLED, setup_network=Network.ENABLED)
    beside_it = here.start(plain, network=Network.ENABLED)
    for each in (one, beside_it):
        here.run(
            each, f": >heard; (sleep 4320 | nc {near.PUBLIC} {near.TICKS}) >>heard 2>&1 &"
        )  # it is there to be counted
        _hears(here, each, 5)
    here.provider.set_network(one, Network.DISABLED)
    _hears(here, beside_it, 5)  # what had reached the sandbox by then has been written, too
    heard = _heard(here, one)
    _hears(here, beside_it, 50)
    assert _heard(here, one) == heard
    here.provider.set_network(one, Network.ENABLED)
    assert _reaches(here, one, near.PUBLIC)
    _hears(here, beside_it, 50)
    assert _heard(here, one) == heard
    assert here.run(one, "tail -n 1 /etc/hosts").stdout.decode().split()[0] == _address(here, one)


def test_the_last_one_takes_the_network_along_and_leases_are_given_back(here: Installation) -> None:
    plain = here.images.plain()
    leases = here.run_folder / "network" / "leases" / network_rules.net_name(f"{here.label} {here.home}")
    one, two = (here.start(plain, network=Network.ENABLED) for _ in range(2))
    held = [path.name for path in leases.iterdir() if path.name.count(".") == 3]
    assert sorted(held) == sorted(_address(here, each) for each in (one, two))
    here.provider.destroy(one)
    assert not (leases / held[0]).exists() or not (leases / held[1]).exists()
    assert here.left()["interfaces and tables"] != []
    here.provider.destroy(two)
    assert here.left() == {}
    assert not leases.parent.parent.exists()


def test_ends_at_the_same_time_leave_no_network(here: Installation) -> None:
    plain = here.images.plain()
    started = [here.start(plain, network=Network.ENABLED) for _ in range(4)]
    threads = [threading.Thread(target=here.provider.destroy, args=(each,)) for each in started]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert here.left() == {}


def test_what_an_administrator_allows_is_reached_and_nothing_beside_it(images: Images, beside: str) -> None:
    allowed = (near.PRIVATE[0], f"{near.LINK_LOCAL}/32", near.OURS)
    installation = Installation(images, reach=Reach(allowed, (near.PRIVATE[1],)))
    try:
        _able_or_skip(installation)
        (finding,) = [each for each in installation.provider.check() if each.name == "network"]
        for each in (*allowed, f"ask {near.PRIVATE[1]} for names"):
            assert each in finding.says
        allocation = installation.start(images.plain(), network=Network.ENABLED)
        with _listening_everywhere() as port:
            assert _reaches(installation, allocation, near.OURS, port)
            gateway = installation.run(allocation, "ip route show default").stdout.decode().split()[2]
            assert not _reaches(installation, allocation, gateway, port)
        for address in (*near.PRIVATE, near.LINK_LOCAL, near.PUBLIC):
            reached = _reaches(installation, allocation, address)
            assert reached == (address in (near.PRIVATE[0], near.LINK_LOCAL, near.PUBLIC)), address
        assert installation.run(allocation, "cat /etc/resolv.conf").stdout.decode() == f"nameserver {near.PRIVATE[1]}\n"
        assert _reaches(installation, allocation, near.PRIVATE[1], near.NAMES)
        other = installation.start(images.plain(), network=Network.ENABLED)
        installation.run(other, "nc -ll -p 7178 -e echo here >/dev/null 2>&1 & sleep 0.3")
        assert not _reaches(installation, allocation, _address(installation, other), 7178)
    finally:
        installation.end()


def test_a_resolver_on_the_host_itself_is_asked_for_names_only(
    here: Installation, beside: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where a host's own resolver listens at its address in the private network."""
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"nameserver {near.OURS}\n")
    monkeypatch.setattr(network, "_RESOLVERS", (resolver,))
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    with _answering(near.OURS, near.NAMES), _listening_everywhere() as other:
        assert _reaches(here, allocation, near.OURS, near.NAMES)
        assert near.answers(near.OURS, other)
        assert not _reaches(here, allocation, near.OURS, other)


def _delete_rules(here: Installation) -> None:
    for family in network_rules.FAMILIES:
        name = network_rules.net_name(f"{here.label} {here.home}")
        subprocess.run(["nft", "delete", "table", family, name], check=True)


def _rules(here: Installation) -> str:
    name = network_rules.net_name(f"{here.label} {here.home}")
    listed = [
        subprocess.run(["nft", "list", "table", family, name], capture_output=True, text=True, check=False).stdout
        for family in network_rules.FAMILIES
    ]
    return "".join(listed)


def test_rules_that_somebody_flushed_are_back_with_the_next_start(here: Installation, beside: str) -> None:
    plain = here.images.plain()
    one = here.start(plain, network=Network.ENABLED)
    _delete_rules(here)
    assert _reaches(here, one, near.PRIVATE[0])  # so it is these rules that deny it
    here.start(plain, network=Network.ENABLED)
    assert _reaches(here, one, near.PUBLIC)
    assert not _reaches(here, one, near.PRIVATE[0])


def test_rules_that_somebody_flushed_or_changed_are_put_back_and_told(here: Installation, beside: str) -> None:
    here.provider.uphold()
    assert _rules(here) == ""
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    rules, name = _rules(here), network_rules.net_name(f"{here.label} {here.home}")
    for command in (
        *(f"delete table {family} {name}" for family in network_rules.FAMILIES),
        f"flush table inet {name}",
        f"delete element inet {name} denied {{ 10.0.0.0/8 }}",
        f"insert rule inet {name} outgoing accept",
    ):
        subprocess.run(["nft", command], check=True)
        assert _rules(here) != rules
        with structlog.testing.capture_logs() as logs:
            here.provider.uphold()
            here.provider.uphold()
        assert [line["log_level"] for line in logs] == ["warning"], command
        assert _rules(here) == rules
        assert not _reaches(here, allocation, near.PRIVATE[0])
        assert _reaches(here, allocation, near.PUBLIC)
    here.provider.destroy(allocation)
    here.provider.uphold()
    assert _rules(here) == ""


def test_while_rules_cannot_be_put_back_nothing_passes(
    here: Installation, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    _delete_rules(here)
    with monkeypatch.context() as broken, structlog.testing.capture_logs() as logs:
        broken.setattr(network, "install_rules", lambda _: "no rule")
        here.provider.uphold()
        assert not _reaches(here, allocation, near.PUBLIC)
        assert not _reaches(here, allocation, near.PRIVATE[0])
        here.provider.uphold()
    assert [line["log_level"] for line in logs] == ["error"] * 2
    here.provider.uphold()
    assert _reaches(here, allocation, near.PUBLIC)
    assert not _reaches(here, allocation, near.PRIVATE[0])


def test_a_node_that_starts_makes_sure_of_the_rules(here: Installation, beside: str) -> None:
    """It cannot know what happened while no node was there."""
    allocation = here.start(here.images.plain(), network=Network.ENABLED)
    here.provider.close()
    _delete_rules(here)
    here.provider = here.opened()
    here.provider.uphold()
    assert not _reaches(here, allocation, near.PRIVATE[0])
    assert _reaches(here, allocation, near.PUBLIC)


@pytest.mark.parametrize("lacking", ["plugins", "programs", "kernel"])
def test_a_host_that_cannot_enforce_it_does_not_declare_it(
    images: Images, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacking: str
) -> None:
    name, value = {
        "plugins": ("_PLUGIN_FOLDERS", (tmp_path,)),
        "programs": ("_PROGRAMS", ("no-such-program",)),
        "kernel": ("_TRY", "echo 'Operation not supported' >&2; exit 1"),
    }[lacking]
    monkeypatch.setattr(network, name, value)
    installation = Installation(images)
    try:
        assert installation.provider.declaration.networks == {Network.DISABLED}
        (finding,) = [each for each in installation.provider.check() if not each.ok]
        assert (finding.name, finding.fatal, finding.reason) == ("network", False, None)
        with refused(Reason.NETWORK_UNSUPPORTED):
            installation.provider.create(order_for(images.plain(), network=Network.ENABLED))
    finally:
        installation.end()
