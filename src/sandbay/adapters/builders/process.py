"""Build tools as processes: confined to namespaces of their own, bounded, heard line by line, and gone at the end.

However the process that started it ends, kill -9 included, a tool's mounts and processes end with it.
"""

import os
import re
import select
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.builder import Say

_ENCLOSED = (
    *("setpriv", "--pdeathsig", "KILL", "--", "nice", "-n", "5", "unshare"),
    *("--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"),
)
_PROGRAMS = {"setpriv": "util-linux", "unshare": "util-linux", "nice": "coreutils"}
_STEP = re.compile(r"(?:\[\d+/\d+\] )?STEP (\d+)/(\d+): (.*)")
_STATUS = re.compile(r"exit status (\d+)")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TAIL = 20
_LINE_BYTES = 16 * 1024
_PAUSE = 0.2


def need(programs: Mapping[str, str]) -> None:
    """Refuse with `host_unfit` unless every program (name → Debian package) is there, and we are root."""
    missing = sorted({package for name, package in {**_PROGRAMS, **programs}.items() if shutil.which(name) is None})
    if missing:
        message = f"building needs programs that this host lacks: apt-get install {' '.join(missing)}"
        raise RefusedError(Reason.HOST_UNFIT, message, details={"missing": missing})
    if os.geteuid() != 0:
        raise RefusedError(Reason.HOST_UNFIT, "building images needs root on this host; run it with sudo")


@dataclass
class Heard:
    """What a tool said: the step it was at, and its last lines. Where the work folder is stays the host's own."""

    say: Say
    folder: Path
    step: str | None = None
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL))
    _rest: bytes = b""

    def take(self, chunk: bytes) -> None:
        """More output."""
        *lines, self._rest = (self._rest + chunk.replace(b"\r", b"\n")).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > _LINE_BYTES:
            self.end()

    def end(self) -> None:
        """What came without an end of line."""
        if self._rest:
            self._line(self._rest)
        self._rest = b""

    def _line(self, line: bytes) -> None:
        text = _CONTROL.sub("", line.decode(errors="replace")).replace(f"{self.folder}/", "")
        if not text.strip():
            return
        step = _STEP.fullmatch(text)
        if step is not None:
            self.step = step[3]
        self.tail.append(text[:500])
        self.say(text + "\n")


@dataclass(frozen=True)
class Tools:
    """Runs build tools in `folder` until `deadline` (monotonic seconds) or until `cancel` is set."""

    folder: Path
    environment: Mapping[str, str]
    say: Say
    cancel: threading.Event
    deadline: float
    bounds: Sequence[str] = ()
    """What goes before a command so that it runs within its bounds."""
    held: Sequence[int] = ()
    """Descriptors that stay open until the last of the tools is gone."""

    def run(self, command: Sequence[str], doing: str) -> None:
        """Run one to its end. Refuses with `build_failed`, `cancelled`."""
        heard = Heard(self.say, self.folder)
        code = self._run(command, heard)
        heard.end()
        if self.cancel.is_set():
            raise cancelled()
        if code != 0:
            raise _failed(doing, heard, code)

    def _run(self, command: Sequence[str], heard: Heard) -> int:
        alive, held = os.pipe()
        with os.fdopen(alive, "rb") as until_gone:
            try:
                process = subprocess.Popen(
                    [*self.bounds, *_ENCLOSED, *command],
                    env=self.environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(held, *self.held),
                )
            finally:
                os.close(held)
            with process:
                try:
                    self._listen(process, heard)
                finally:
                    with suppress(ProcessLookupError):
                        process.kill()
                    until_gone.read()  # ends with the last descendant: whoever removes the folder comes after it
                return process.wait()

    def _listen(self, process: "subprocess.Popen[bytes]", heard: Heard) -> None:
        output = process.stdout
        if output is None:
            return
        while not self.cancel.is_set():
            if time.monotonic() > self.deadline:
                raise RefusedError(Reason.BUILD_FAILED, "the build took longer than it may", details=_facts(heard))
            if select.select([output], [], [], _PAUSE)[0]:
                chunk = os.read(output.fileno(), 65536)
                if not chunk:
                    process.wait()
                    return
                heard.take(chunk)


def cancelled() -> RefusedError:
    """The end of a build that was told to end."""
    return RefusedError(Reason.CANCELLED, "the publish was cancelled")


def _facts(heard: Heard, code: int | None = None) -> dict[str, object]:
    return {"step": heard.step, "exit_code": code, "output": list(heard.tail)}


def _failed(doing: str, heard: Heard, code: int) -> RefusedError:
    """The tool's own exit code says little; the step's is in its last words."""
    if heard.step is None:
        return RefusedError(Reason.BUILD_FAILED, f"{doing} failed (exit code {code})", details=_facts(heard, code))
    said = next((match for line in reversed(heard.tail) if (match := _STATUS.search(line))), None)
    status = int(said[1]) if said else code
    message = f"the step {heard.step[:200]!r} failed (exit code {status})"
    return RefusedError(Reason.BUILD_FAILED, message, details=_facts(heard, status))
