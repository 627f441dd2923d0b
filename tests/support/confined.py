"""What code inside the unpacker's child can do: `python -m tests.support.confined ORDER ALL|UNFILTERED`.

Confines itself as the child does, then tries everything, and prints how each try ended: `done`, or an errno's name.
UNFILTERED leaves the list of calls out, which shows that the tries work where only that list is in the way.
"""

import ctypes
import errno
import json
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sandbay.engine import linux, unpack_child
from sandbay.engine.unpack_child import Order, confine

_libc = ctypes.CDLL(None, use_errno=True)
_PARENT = os.getppid()
_HERE = os.open("/proc/self/ns/net", os.O_RDONLY)
_CREATE = os.O_WRONLY | os.O_CREAT
_CALLS_OF_ALL_MACHINES = {
    "ask io_uring": 425,
    "open a tree of mounts": 428,
    "open a new file system": 430,
    "hold another process": 434,
    "make a process anew": 435,
    "take another's descriptor": 438,
    "change mounts": 442,
    "write new rules for itself": 444,
}


def _call(number: int) -> None:
    if _libc.syscall(ctypes.c_long(number), *(ctypes.c_long(0) for _ in range(5))) < 0:
        raise OSError(ctypes.get_errno(), "")


def _fork() -> None:
    pid = _libc.fork()
    if pid < 0:
        raise OSError(ctypes.get_errno(), "")
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _thread() -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def _root() -> int:
    return os.open("/", os.O_RDONLY | os.O_DIRECTORY)


def _follow() -> None:
    os.symlink("/there", "link", dir_fd=_root())
    os.open("/link", os.O_RDONLY)


def _device() -> None:
    os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 3), dir_fd=_root())
    os.open("/device", os.O_RDONLY)


def _many_files() -> None:
    opened: list[int] = []
    try:
        while len(opened) < 10_000:
            opened.append(os.dup(0))
    finally:
        for fd in opened:
            os.close(fd)


def _program() -> None:
    os.close(os.open("/program", _CREATE, 0o755))
    os.execve("/program", ["/program"], {})  # noqa: S606 - it is refused


TRIES: dict[str, Callable[[], object]] = {
    "write its own tree": lambda: os.mkdir("own", dir_fd=_root()),
    "read the host's files": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "climb to the host": lambda: os.open("/../../../../etc/passwd", os.O_RDONLY),
    "look at processes": lambda: list(Path("/proc").iterdir()),
    "follow a link": _follow,
    "open a device": _device,
    "run a program": _program,
    "take much memory": lambda: bytearray(3 << 30),
    "open many files": _many_files,
    "write a large file": lambda: os.truncate(os.open("/large", _CREATE), 1 << 30),
    "fork": _fork,
    "start a thread": _thread,
    "connect": lambda: socket.socket(socket.AF_INET),
    "talk on this machine": socket.socketpair,
    "talk to the kernel": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "signal its parent": lambda: os.kill(_PARENT, 0),
    "mount": lambda: linux.mount("none", "/own", "tmpfs"),
    "unmount": lambda: linux.umount2("/", linux.MNT_DETACH),
    "leave its namespaces": lambda: linux.unshare(linux.CLONE_NEWNS),
    "enter another namespace": lambda: linux.setns(_HERE),
    "change the root": lambda: os.chroot("/own"),
    "stand elsewhere": lambda: os.chdir("/own"),
    "become another": lambda: os.setuid(1000),
    "name the host": lambda: socket.sethostname("x"),
    "set an alarm": lambda: signal.setitimer(signal.ITIMER_REAL, 100),
    **{name: partial(_call, number) for name, number in _CALLS_OF_ALL_MACHINES.items()},
}


def _outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except MemoryError:
        return "MemoryError"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    except RuntimeError:
        return "RuntimeError"
    return "done"


def main(order: str, mode: str) -> None:
    """Confine, try, tell."""
    if mode == "UNFILTERED":
        unpack_child._filter_calls = lambda: None
    confine(Order.from_json(order))
    outcomes = {name: _outcome(attempt) for name, attempt in TRIES.items() if mode == "ALL" or name in CONTROL}
    os.write(1, json.dumps(outcomes).encode())


CONTROL = ("write its own tree", "fork", "start a thread", "talk on this machine", "signal its parent", "set an alarm")


if __name__ == "__main__":
    main(*sys.argv[1:])
