"""Hosts beside this machine that are none: one network namespace with addresses of every kind, routed only here.

Nothing that is sent to them leaves the machine. A lock keeps test runs on the same machine apart.
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

PUBLIC = "198.51.100.2"
OURS = "198.51.100.1"
"""This machine's address on the same wire."""
PRIVATE = ("10.177.0.2", "172.29.177.2", "192.168.177.2", "100.99.177.2", "198.19.255.2")
LINK_LOCAL = "169.254.177.254"
IPV6 = ("2001:db8:177::2", "fd00:ec2:177::254")
PORT, NAMES = 7177, 53

_LOCK = Path("/tmp/sandbay-tests-neighbours.lock")
_SERVER = """
import socket, sys, threading
def serve(port):
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    sys.stdout.write("up\\n")
    sys.stdout.flush()
    while True:
        with server.accept()[0] as caller:
            caller.sendall(b"here\\n")
for port in sys.argv[1:]:
    threading.Thread(target=serve, args=(int(port),)).start()
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
        ports = [str(PORT), str(NAMES)]
        server = subprocess.Popen([*enter, sys.executable, "-c", _SERVER, *ports], stdout=subprocess.PIPE)
        stack.callback(_end, server)
        assert server.stdout is not None
        assert [server.stdout.readline() for _ in ports] == [b"up\n"] * 2
        yield name


def _wire(near: str, name: str, far: str) -> None:
    ip("-n", name, "link", "set", "lo", "up")
    ip("-n", name, "link", "set", far, "up")
    ip("link", "set", near, "up")
    ip("address", "add", f"{OURS}/24", "dev", near)
    ip("-n", name, "address", "add", f"{PUBLIC}/24", "dev", far)
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
