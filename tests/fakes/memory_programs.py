"""The programs of a simulated sandbox, and just enough of a shell to join them.

An image's file whose bytes are `builtin:NAME` is one of these programs.
"""

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sandbay.domain.command import TerminalSize, User
from sandbay.domain.errors import RefusedError
from sandbay.ports.provider import Emit, Stream
from tests.fakes.memory_files import MemoryFiles

MARK = b"builtin:"
_ZERO = bytes(64 * 1024)
_BEAT = 0.01


class KilledError(Exception):
    """The program was stopped from outside; `timed_out` when by its own limit."""

    def __init__(self, *, timed_out: bool) -> None:
        super().__init__("killed")
        self.timed_out = timed_out


@dataclass(frozen=True)
class Process:
    """One running program."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    user: User
    workdir: str
    files: MemoryFiles
    stdin: Iterator[bytes]
    emit: Emit
    stops: tuple[threading.Event, ...]
    deadline: float | None
    stream: Stream = Stream.STDOUT
    terminal: Callable[[], TerminalSize | None] = lambda: None

    def look(self) -> None:
        """Raise when somebody wants this to end."""
        if any(stop.is_set() for stop in self.stops):
            raise KilledError(timed_out=False)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise KilledError(timed_out=True)

    def out(self, data: bytes) -> None:
        self.look()
        self.emit(self.stream, data)

    def complain(self, text: str) -> int:
        self.emit(Stream.STDERR, f"{self.argv[0]}: {text}\n".encode())
        return 1


def run(process: Process) -> int:
    """Run a program to its end and return what it ends with."""
    process.look()
    found = _look_up(process)
    if isinstance(found, int):
        return found
    return found(process)


Program = Callable[[Process], int]


def _look_up(process: Process) -> Program | int:
    name = process.argv[0]
    folders = [""] if "/" in name else process.env.get("PATH", "").split(":")
    verdict = 127
    for path in (f"{folder}/{name}" if folder else name for folder in folders):
        try:
            entry = process.files.find(path if path.startswith("/") else f"{process.workdir}/{path}")
        except RefusedError:
            continue
        if entry.data is None or not entry.mode & 0o111:
            verdict = 126
        elif entry.data.startswith(MARK):
            return PROGRAMS[entry.data.removeprefix(MARK).decode()]
        elif entry.data.startswith(b"#!"):
            return 127
        else:
            return 126
    return verdict


def _echo(process: Process) -> int:
    process.out(" ".join(process.argv[1:]).encode("utf-8", "surrogateescape") + b"\n")
    return 0


def _cat(process: Process) -> int:
    for path in process.argv[1:]:
        try:
            process.out(process.files.read(_from(process, path)).read())
        except RefusedError as error:
            return process.complain(error.refusal.message)
    if len(process.argv) == 1:
        for chunk in process.stdin:
            process.out(chunk)
    return 0


def _head(process: Process) -> int:
    """`head -c COUNT /dev/zero`."""
    left = int(process.argv[2])
    while left:
        chunk = _ZERO[:left]
        process.out(chunk)
        left -= len(chunk)
    return 0


def _sleep(process: Process) -> int:
    end = time.monotonic() + float(process.argv[1])
    while time.monotonic() < end:
        process.look()
        time.sleep(_BEAT)
    return 0


def _env(process: Process) -> int:
    process.out("".join(f"{name}={value}\n" for name, value in process.env.items()).encode())
    return 0


def _id(process: Process) -> int:
    user, option = process.user, process.argv[1]
    says = {"-u": [user.uid], "-g": [user.gid], "-G": [user.gid, *user.groups]}[option]
    process.out(" ".join(map(str, says)).encode() + b"\n")
    return 0


def _pwd(process: Process) -> int:
    process.out(process.workdir.encode() + b"\n")
    return 0


def _link(process: Process) -> int:
    """`ln -s TARGET PATH`."""
    process.files.link(process.argv[2], _from(process, process.argv[3]))
    return 0


def _stty(process: Process) -> int:
    """`stty size`."""
    size = process.terminal()
    if size is None:
        return process.complain("standard input is no terminal")
    process.out(f"{size.rows} {size.columns}\n".encode())
    return 0


def _touch(process: Process) -> int:
    process.files.write(_from(process, process.argv[1]), [])
    return 0


def _shell(process: Process) -> int:
    """`sh -c LINE`: commands joined by `;`, each perhaps with `>&2`; exit N; kill -N $$."""
    code = 0
    for part in process.argv[2].split(";"):
        words = shlex.split(part)
        stream = Stream.STDERR if words[-1:] == [">&2"] else Stream.STDOUT
        words = [word for word in words if word != ">&2"]
        match words:
            case []:
                continue
            case ["exit", number]:
                return int(number)
            case ["kill", signal, "$$"]:
                return 128 - int(signal)
            case _:
                code = run(replace(process, argv=tuple(words), stream=stream))
    return code


def _from(process: Process, path: str) -> str:
    return path if path.startswith("/") else f"{process.workdir}/{path}"


PROGRAMS: Mapping[str, Program] = {
    "true": lambda _: 0,
    "false": lambda _: 1,
    "echo": _echo,
    "cat": _cat,
    "head": _head,
    "sleep": _sleep,
    "env": _env,
    "id": _id,
    "pwd": _pwd,
    "ln": _link,
    "stty": _stty,
    "touch": _touch,
    "sh": _shell,
}
