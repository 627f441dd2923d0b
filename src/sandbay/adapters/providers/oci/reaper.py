"""A small process of its own that starts programs in sandboxes and learns how they end.

`runtime exec --detach` leaves the program to whoever adopts orphans, and only a parent is told an exit status.
Were the node itself that subreaper, every orphan of anything it ever starts would become its zombie, and asyncio
or subprocess could reap a program's status away. Here all children are ours, so `waitpid(-1)` is right.

Runs as `python -I -S reaper.py` with a SOCK_SEQPACKET socket as standard input. A request is JSON
`{"argv": […], "pid_file": …, "aside": …}` with four descriptors: a socket to answer on, and the program's stdin, stdout
and stderr. With `aside` it starts in a mount namespace of its own in which `hidden` is unmounted, and finds `procs`,
opened for writing, as descriptor `number`.
Answers: `{"started": pid}` or `{"failed": code}`, and after the first `{"ended": code}`, 128+n for signal n.
When the node goes away the socket ends, and so does this process.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

# Started without site-packages: what it needs of us is found from where it lies.
sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from sandbay.engine import linux

_REQUEST_BYTES = 65_536
_FDS = 4
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
# Python ignores these two; an ignored signal would stay ignored in the sandbox's program.
_DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True)
class _Job:
    reply: socket.socket
    pid_file: str

    def tell(self, **message: int) -> None:
        # Whoever asked may have gone meanwhile.
        with contextlib.suppress(OSError):
            self.reply.send(json.dumps(message).encode())


@dataclass(frozen=True)
class _Aside:
    hidden: str
    procs: str
    number: int


class Reaper:
    """Jobs whose runtime client still runs, and programs that run, each by pid."""

    def __init__(self, control: socket.socket) -> None:
        """Become the adopter of orphans."""
        linux.set_child_subreaper()
        self._control = control
        self._starting: dict[int, _Job] = {}
        self._running: dict[int, _Job] = {}
        self._early: dict[int, int] = {}

    def serve(self) -> None:
        """Until the control socket ends."""
        woken, wake = socket.socketpair()
        for end in (woken, wake):
            end.settimeout(0)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is woken:
                        with contextlib.suppress(BlockingIOError):
                            woken.recv(4096)
                        self._reap()
                    elif not self._take():
                        self._reap()
                        return

    def _take(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, _REQUEST_BYTES, _FDS)
        if not data:
            return False
        reply, *streams = fds
        request = json.loads(data)
        job = _Job(socket.socket(fileno=reply), request["pid_file"])
        try:
            aside = request["aside"]
            argv = request["argv"]
            pid = _spawn(argv, streams) if aside is None else _spawn_aside(argv, streams, _Aside(**aside))
            self._starting[pid] = job
        except OSError:
            job.tell(failed=127)
            job.reply.close()
        finally:
            for fd in streams:
                os.close(fd)
        return True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._ended(pid, _code(status))
            if not self._starting:
                self._early.clear()

    def _ended(self, pid: int, code: int) -> None:
        if (job := self._starting.pop(pid, None)) is not None:
            self._client_ended(job, code)
        elif (job := self._running.pop(pid, None)) is not None:
            job.tell(ended=code)
            job.reply.close()
        else:
            # A program can end before its runtime client does; an orphan of an ended one means nothing.
            self._early[pid] = code

    def _client_ended(self, job: _Job, code: int) -> None:
        try:
            program = int(Path(job.pid_file).read_text()) if code == 0 else 0
        except (OSError, ValueError):
            program = 0
        if program == 0:
            job.tell(failed=code)
            job.reply.close()
            return
        job.tell(started=program)
        if (ended := self._early.pop(program, None)) is None:
            self._running[program] = job
        else:
            job.tell(ended=ended)
            job.reply.close()


def _spawn(argv: list[str], streams: Sequence[int], more: Mapping[int, int] = MappingProxyType({})) -> int:
    """Start a program with these descriptors as 0 and up, and `more` as number → descriptor; its pid."""
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in [*enumerate(streams), *more.items()]]
    return os.posix_spawnp(
        argv[0], argv, _ENVIRONMENT, file_actions=actions, setsid=True, setsigdef=_DEFAULTS, setsigmask=()
    )


def _spawn_aside(argv: list[str], streams: Sequence[int], aside: _Aside) -> int:
    """As `_spawn`, from a thread that has left our mount namespace: three programs less than asking `unshare` to."""
    outcome: list[int | BaseException] = []
    procs = os.open(aside.procs, os.O_WRONLY | os.O_CLOEXEC)

    def act() -> None:
        try:
            linux.unshare(linux.CLONE_FS | linux.CLONE_NEWNS)
            linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
            linux.umount2(aside.hidden, linux.MNT_DETACH)
            outcome.append(_spawn(argv, streams, {aside.number: procs}))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            outcome.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    os.close(procs)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    Reaper(socket.socket(fileno=0)).serve()
