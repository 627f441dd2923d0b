"""A terminal for one program: made in the sandbox's own devpts, whose master is handed to us."""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
import termios
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from sandbay.adapters.providers.oci.streams import CHUNK, Feeder, Source
from sandbay.domain.command import TerminalSize
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Stream

_HANDED_SECONDS = 30.0
_REST_BYTES = 1024 * 1024
"""What a terminal can hold is far less; a program left running in it could write for ever."""

_END_OF_INPUT = b"\x04"
_MASTERS = os.makedev(5, 2)


class Terminal:
    """The streams of a program that has a terminal: what it prints is all standard output."""

    def __init__(self, stdin: Iterable[bytes]) -> None:
        """Its master is still to come."""
        self._stdin = stdin
        self._lock = threading.Lock()
        self._master: int | None = None
        self._feeder: Feeder | None = None

    def __enter__(self) -> Self:
        return self

    def give(self) -> list[int]:
        """The program's streams are its terminal."""
        return []

    def take(self, master: int) -> None:
        """Keep the terminal's master. Refuses with `start_failed` what is none: it comes out of the sandbox."""
        if not _is_master(master):
            os.close(master)
            raise RefusedError(Reason.START_FAILED, "what was handed over is no terminal")
        os.set_blocking(master, False)
        self._master = master

    def begin(self) -> Sequence[Source]:
        """The program runs: feed it, and tell what to read."""
        if self._master is None:
            raise RefusedError(Reason.START_FAILED, "no terminal was handed over")
        if self._stdin != ():
            self._feeder = Feeder(self._stdin, os.dup(self._master), _END_OF_INPUT)
        return [_Master(self._master)]

    def resize(self, size: TerminalSize) -> None:
        """The kernel tells the programs in the foreground. Without a program it does nothing."""
        with self._lock:
            if self._master is not None:
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))

    def __exit__(self, *_: object) -> None:
        if self._feeder is not None:
            self._feeder.stop()
        with self._lock:
            if self._master is not None:
                os.close(self._master)
                self._master = None


class Console(Terminal):
    """A terminal that the runtime makes and hands over on a socket."""

    def __init__(self, folder: Path, stdin: Iterable[bytes], size: TerminalSize) -> None:
        """`folder` is the exec's own."""
        super().__init__(stdin)
        self._folder, self._size = folder, size
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            undo.callback(os.close, self._nothing)
            self._place = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            undo.callback(os.close, self._place)
            self._listener = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            self._listener.bind(self._path)
            self._listener.listen(1)
            self._undo = undo.pop_all()
        return self

    @property
    def _path(self) -> str:
        """Short, however long the folder's own path is: an address of a socket holds 107 bytes."""
        return f"/proc/{os.getpid()}/fd/{self._place}/console"

    @property
    def arguments(self) -> Sequence[str]:
        """For the runtime's exec."""
        return ["--console-socket", self._path]

    def give(self) -> list[int]:
        """Descriptors of stdin, stdout, stderr for the runtime's client; the program's are its terminal."""
        return [self._nothing] * 3

    def begin(self) -> Sequence[Source]:
        """Take the master first. Refuses with `start_failed`."""
        self.take(self._handed_over())
        self.resize(self._size)
        return super().begin()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._undo.close()

    def _handed_over(self) -> int:
        self._listener.settimeout(_HANDED_SECONDS)
        try:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(_HANDED_SECONDS)
                _, fds, _, _ = socket.recv_fds(connection, CHUNK, 1, socket.MSG_CMSG_CLOEXEC)
        except TimeoutError:
            fds = []
        if not fds:
            raise RefusedError(Reason.START_FAILED, "the runtime handed no terminal over")
        return fds[0]


def _is_master(fd: int) -> bool:
    """Only a file system of terminals lets anybody in a sandbox open such a device."""
    status = os.fstat(fd)
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == _MASTERS and os.isatty(fd)


class _Master:
    """Reads what is printed."""

    stream = Stream.STDOUT

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self) -> bytes | None:
        """The next bytes; empty at the end, None when there are none yet."""
        try:
            return os.read(self.fd, CHUNK)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.EIO:  # nobody has it open any more
                return b""
            raise

    def rest(self) -> Iterator[bytes]:
        """What was printed before the program's end."""
        left = _REST_BYTES
        while left > 0 and (data := self.read()):
            left -= len(data)
            yield data
