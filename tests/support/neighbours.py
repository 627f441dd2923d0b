"""Hosts beside this machine that are none: one network namespace with addresses of every kind, routed only here.

Nothing that is sent to them leaves the machine. Each worker of a test run has addresses of its own; a lock keeps
runs on the same machine apart.
"""

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_SLOT = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 16
PUBLIC = f"198.51.100.{16 * _SLOT + 2}"
OURS = f"198.51.100.{16 * _SLOT + 1}"
"""This machine's address on the same wire."""
PRIVATE = tuple(
    f"{network}.{_SLOT + 2}" for network in ("10.177.0", "172.29.177", "192.168.177", "100.99.177", "198.19.255")
)
LINK_LOCAL = f"169.254.177.{_SLOT + 2}"
IPV6 = (f"2001:db8:177:{_SLOT}::2", f"fd00:ec2:177:{_SLOT}::254")
PORT, NAMES = 7177, 53
TICKS = 7178
"""Where a connection hears something for ever."""

_LOCK = Path(f"/tmp/sandbay-tests-neighbours-{_SLOT}.lock")
_SERVER = """
import contextlib, socket, sys, threading, time
def answer(caller):
    caller.sendall(b"here\\n")
def tick(caller):
    while True:
        caller.sendall(b"tick\\n")
        time.sleep(0.02)
def talk(caller, say):
    with contextlib.suppress(OSError), caller:
        say(caller)
def serve(port, say):
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    sys.stdout.write("up\\n")
    sys.stdout.flush()
    while True:
        threading.Thread(target=talk, args=(server.accept()[0], say)).start()
for word in sys.argv[1:]:
    name, _, port = word.partition(":")
    threading.Thread(target=serve, args=(int(port), {"answer": answer, "tick": tick}[name])).start()
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextlib.contextmanager
def neighbours() -> Iterator[str]:
    """The hosts, answering `here` on `PORT` and `NAMES`; the value is their namespace's name."""
    fd = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    name = f"sbytest{os.getpid()}"
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, fd)
        ip("netns", "add", name)
        stack.callback(ip, "netns", "delete", name)
        near, far = f"sbt{os.getpid()}", "far"
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        stack.callback(_unlink, near)
        _wire(near, name, far)
        enter = ["nsenter", f"--net=/run/netns/{name}", "--"]
        ports = [f"answer:{PORT}", f"answer:{NAMES}", f"tick:{TICKS}"]
        server = subprocess.Popen([*enter, sys.executable, "-c", _SERVER, *ports], stdout=subprocess.PIPE)
        stack.callback(_end, server)
        assert server.stdout is not None
        assert [server.stdout.readline() for _ in ports] == [b"up\n"] * len(ports)
        yield name


def _wire(near: str, name: str, far: str) -> None:
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "link", "set", far, "up")
    ip("link", "set", near, "up")
    ip("address", "add", f"{OURS}/28", "dev", near)
    ip("-n", name, "address", "add", f"{PUBLIC}/28", "dev", far)
    ip("-n", name, "route", "add", "default", "via", OURS)
    for address in (*PRIVATE, LINK_LOCAL):
        ip("-n", name, "address", "add", f"{address}/32", "dev", far)
        ip("route", "add", f"{address}/32", "dev", near, "src", OURS)
    for number, address in enumerate(IPV6):
        prefix = address.rpartition("::")[0]
        ip("address", "add", f"{prefix}::f{number}/64", "dev", near, "nodad")
        ip("-n", name, "address", "add", f"{address}/64", "dev", far, "nodad")


def _unlink(near: str) -> None:
    """Now, rather than when the namespace has gone."""
    ip("link", "delete", near)


def _end(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.communicate()


def answers(address: str, port: int = PORT) -> bool:
    """Whether this machine itself is answered there, with some patience for what has just been made."""
    for _ in range(20):
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=2) as connection:
            return connection.recv(16) == b"here\n"
        time.sleep(0.05)
    return False


def lacking() -> list[str]:
    """What this machine lacks for it."""
    return [program for program in ("ip", "nsenter") if shutil.which(program) is None]
