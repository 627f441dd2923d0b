"""The node's side of the reaper: one process, started when first needed and again should it die."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbay.adapters.providers.oci.cgroups import Aside

_PROGRAM = Path(__file__).with_name("reaper.py")


@dataclass(frozen=True, slots=True)
class Left:
    """How a client ended, its exit code or None when it took too long, and the way to hear of what it left running."""

    code: int | None
    answers: socket.socket

    def ended(self, seconds: float) -> int | None:
        """Wait for what it left running to end: its exit code, 128+n for signal n, or None when it still runs."""
        self.answers.settimeout(seconds)
        try:
            ended = json.loads(self.answers.recv(4096) or b"{}").get("ended")
        except TimeoutError:
            return None
        return None if ended is None else int(ended)

    def close(self) -> None:
        """Hear no more of it."""
        self.answers.close()


class Reaping:
    """Hands commands to the reaper. Safe to use from many threads."""

    def __init__(self) -> None:
        """The process is started by the first `start`."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(
        self, argv: Sequence[str], pid_file: Path, streams: Sequence[int], apart: Aside | None = None
    ) -> socket.socket:
        """Run the runtime's client with these stdin, stdout, stderr; the answers come on the returned socket."""
        answers, reply = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wanted = {"argv": list(argv), "pid_file": str(pid_file), "aside": apart and asdict(apart)}
        request = json.dumps(wanted).encode()
        with reply, self._lock:
            fds = [reply.fileno(), *streams]
            try:
                socket.send_fds(self._connected(), [request], fds)
            except (BrokenPipeError, ConnectionResetError):
                self._drop()
                socket.send_fds(self._connected(), [request], fds)
        return answers

    def call(
        self, argv: Sequence[str], pid_file: Path, timeout: float, apart: Aside | None = None, stdin: Path | None = None
    ) -> Left:
        """Run a client that leaves a program running, both with this file as their input and no output.

        The program becomes the reaper's child, so it is no zombie when it ends, whatever the host's first process does.
        """
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        given = os.open(stdin or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            answers = self.start(argv, pid_file, [given, nothing, nothing], apart)
        finally:
            os.close(nothing)
            os.close(given)
        answers.settimeout(timeout)
        try:
            message = json.loads(answers.recv(4096) or b"{}")
        except TimeoutError:
            return Left(None, answers)
        return Left(0 if "started" in message else int(message.get("failed", 255)), answers)

    def close(self) -> None:
        """End the process; what it started lives on."""
        with self._lock:
            self._drop()

    def _connected(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self._drop()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=environment,
                cwd="/",
            )
        return self._control

    def _drop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.wait()
        self._control = self._process = None
