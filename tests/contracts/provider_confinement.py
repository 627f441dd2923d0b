"""Provider suite: limits that hold, and what a sandbox cannot do or see."""

import socket
from pathlib import Path

import pytest

from sandbay.domain.declaration import Network, Resource
from sandbay.domain.deployment import MIB, SandboxSize
from tests.contracts.provider_harness import SMALL, Offer, ProviderHarness, Sandbox, needs, start

_CAP_SYS_ADMIN, _CAP_NET_ADMIN, _CAP_SYS_PTRACE, _CAP_MKNOD = 21, 12, 19, 27


def _limited(harness: ProviderHarness, resource: Resource, size: SandboxSize) -> Sandbox:
    needs(harness, Offer.SHELL)
    if resource not in harness.provider.declaration.enforces:
        pytest.skip(f"this machine's control groups cannot limit {resource}")
    return start(harness, harness.variants.web, size=size)


def _status(sandbox: Sandbox) -> dict[str, str]:
    lines = sandbox.run("cat", "/proc/self/status").lines
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


class ConfinementSuite:
    def test_memory_is_limited(self, harness: ProviderHarness) -> None:
        sandbox = _limited(harness, Resource.MEMORY, SandboxSize(SMALL.cpus, 48 * MIB, SMALL.pids))
        greedy = sandbox.run("dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1")
        assert greedy.code not in (0, 126, 127)
        modest = sandbox.run("dd", "if=/dev/zero", "of=/dev/null", "bs=4M", "count=1")
        assert modest.code == 0

    def test_processes_are_limited(self, harness: ProviderHarness) -> None:
        sandbox = _limited(harness, Resource.PIDS, SandboxSize(SMALL.cpus, SMALL.memory, 40))
        bomb = "i=0; while [ $i -lt 60 ]; do sleep 4310 & i=$((i+1)); done; echo all"
        ran = sandbox.sh(bomb)
        assert b"all" not in ran.stdout
        assert b"fork" in ran.stderr
        other = start(harness, harness.variants.web)
        assert other.sh("for i in 1 2 3 4 5; do sleep 4311 & done; echo all").stdout == b"all\n"

    def test_processor_time_is_limited(self, harness: ProviderHarness) -> None:
        sandbox = _limited(harness, Resource.CPUS, SandboxSize(0.25, SMALL.memory, SMALL.pids))
        ran = sandbox.sh("timeout 2 sh -c 'while :; do :; done'; cat /proc/self/stat >/dev/null; times")
        seconds = sum(
            float(minutes) * 60 + float(rest.rstrip("s"))
            for word in ran.stdout.split()
            for minutes, rest in [word.decode().split("m")]
        )
        # Two seconds by the clock at a quarter of a processor are half a second; unlimited, they are two.
        assert 0 < seconds < 1.2

    def test_root_inside_is_not_root_outside(self, harness: ProviderHarness) -> None:
        needs(harness, Offer.HOST_VIEW)
        sandboxes = [start(harness, harness.variants.web) for _ in range(2)]
        outside = set()
        for sandbox in sandboxes:
            assert sandbox.run("id", "-u").lines == ["0"]
            process = Path("/proc", str(harness.provider.booted(sandbox.allocation).host_pid))
            first_inside, first_outside, count = map(int, (process / "uid_map").read_text().split())
            assert (first_inside, count) == (0, 65536)
            assert first_outside >= 65536
            assert process.stat().st_uid == first_outside
            assert (process / "gid_map").read_text().split() == (process / "uid_map").read_text().split()
            outside.add(first_outside)
        assert len(outside) == 2

    def test_root_has_few_powers(self, harness: ProviderHarness) -> None:
        needs(harness, Offer.SHELL)
        status = _status(start(harness, harness.variants.web))
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        for kind in ("CapEff", "CapPrm", "CapBnd"):
            capabilities = int(status[kind], 16)
            for power in (_CAP_SYS_ADMIN, _CAP_NET_ADMIN, _CAP_SYS_PTRACE, _CAP_MKNOD):
                assert power is _CAP_MKNOD or not capabilities >> power & 1, (kind, power)

    def test_an_ordinary_user_has_none(self, harness: ProviderHarness) -> None:
        needs(harness, Offer.SHELL)
        status = _status(start(harness, harness.variants.data))
        assert int(status["CapEff"], 16) == 0

    @pytest.mark.parametrize(
        "line",
        [
            "mount -t tmpfs none /tmp",
            "umount /proc",
            "mknod /tmp/null c 1 3 && cat /tmp/null",
            "echo 1 >/proc/sys/vm/drop_caches",
            "echo b >/proc/sysrq-trigger",
            "hostname other",
            "cat /proc/kcore",
            "chroot /tmp /bin/true && unshare -m true",
            "unshare -U true",
            "mount -o remount,rw /sys",
        ],
    )
    def test_what_root_cannot_do(self, harness: ProviderHarness, line: str) -> None:
        needs(harness, Offer.SHELL)
        assert start(harness, harness.variants.web).sh(line).code != 0

    def test_only_its_own_processes_are_seen(self, harness: ProviderHarness) -> None:
        needs(harness, Offer.SHELL)
        one, two = start(harness, harness.variants.web), start(harness, harness.variants.web)
        assert one.sh("sleep 4312 & echo on").code == 0
        seen = [line.strip() for line in two.run("ps", "-o", "args").lines]
        assert "sleep 4312" not in seen
        assert len(seen) <= 4  # a header, the init, ps, and room for a helper

    def test_an_enabled_network_reaches_neither_host_nor_neighbour(self, harness: ProviderHarness) -> None:
        needs(harness, Offer.SHELL)
        if Network.ENABLED not in harness.provider.declaration.networks:
            pytest.skip("this machine cannot give sandboxes a network")
        one, two = (start(harness, harness.variants.web, network=Network.ENABLED) for _ in range(2))
        interfaces = [line.split(":")[0].strip() for line in one.run("cat", "/proc/net/dev").lines[2:]]
        assert set(interfaces) > {"lo"}
        assert one.sh("nc -ll -p 7179 -e echo here >/dev/null 2>&1 & sleep 0.3").code == 0
        own = one.sh("tail -n 1 /etc/hosts").lines[0].split()[0]
        assert one.run("nc", "-w", "2", own, "7179").stdout == b"here\n"
        assert two.run("nc", "-w", "2", own, "7179").stdout == b""
        gateway = two.sh("ip route show default").lines[0].split()[2]
        with socket.create_server(("", 0)) as server:
            port = str(server.getsockname()[1])
            assert two.run("nc", "-w", "2", gateway, port, stdin=[b"hello"]).code != 0
            server.settimeout(0)
            with pytest.raises(BlockingIOError):
                server.accept()

    def test_a_disabled_network_reaches_nothing(self, harness: ProviderHarness) -> None:
        needs(harness, Offer.SHELL)
        sandbox = start(harness, harness.variants.web, network=Network.DISABLED)
        interfaces = [line.split(":")[0].strip() for line in sandbox.run("cat", "/proc/net/dev").lines[2:]]
        assert set(interfaces) <= {"lo"}
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            assert sandbox.run("nc", "-w", "2", "127.0.0.1", port, stdin=[b"hello"]).code != 0
            server.settimeout(0)
            with pytest.raises(BlockingIOError):
                server.accept()
