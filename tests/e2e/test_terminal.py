"""The command line in a real terminal: one inside, one here, and this one as it was, whatever ends it."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.installation import SANDBAY, Installation

pytestmark = pytest.mark.real

_WITHIN = 60.0


class Screen:
    """`sandbay …` in a terminal of 30 × 100."""

    def __init__(self, house: Installation, *arguments: str) -> None:
        self._master, slave = os.openpty()
        self._slave = slave
        self.resize(30, 100)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [SANDBAY, *arguments], env=house.env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        self.seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def until(self, text: bytes) -> None:
        """Read until it has been shown; what came up to there is forgotten."""
        deadline = time.monotonic() + _WITHIN
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._master], [], [], 0.5)[0]:
                self.seen += os.read(self._master, 65536)
        self.seen = self.seen.partition(text)[2]

    @property
    def mode(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    def code(self) -> int:
        return self.process.wait(_WITHIN)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        os.close(self._master)


@pytest.fixture
def session(house: Installation) -> Iterator[str]:
    made: str = house.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    yield made
    house.ok("sessions", "rm", made)


@contextlib.contextmanager
def screen(house: Installation, *arguments: str) -> Iterator[Screen]:
    it = Screen(house, *arguments)
    try:
        yield it
    finally:
        it.close()


def test_a_shell_follows_the_window_and_ends_as_it_says(house: Installation, session: str) -> None:
    with screen(house, "sessions", "shell", session) as it:
        it.type(b"stty size; echo at-$((40+2))\n")
        it.until(b"30 100\r\n")
        it.until(b"at-42")
        assert it.mode != it.before
        it.resize(44, 123)
        it.process.send_signal(signal.SIGWINCH)
        it.type(b"while [ \"$(stty size)\" != '44 123' ]; do sleep 0.1; done; echo seen-$((1+1))\n")
        it.until(b"seen-2")
        # It says itself that it runs: keys that come before it does are the shell's.
        it.type(b"sh -c 'echo runs-$((3+3)); exec sleep 4330'\n")
        it.until(b"runs-6")
        it.type(b"\x03")
        it.type(b"echo back-$((2+2))\n")
        it.until(b"back-4")
        it.type(b"exit 7\n")
        assert it.code() == 7
        assert it.mode == it.before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_stop_gives_the_terminal_back(house: Installation, session: str, number: int) -> None:
    with screen(house, "sessions", "exec", session, "-t", "-i", "--", "sh", "-c", "echo up; sleep 4331") as it:
        it.until(b"up\r\n")
        it.process.send_signal(number)
        assert it.code() == 128 + number
        assert it.mode == it.before


def test_a_sandbox_that_ends_gives_the_terminal_back(house: Installation) -> None:
    made = house.ok("sessions", "create", "--image", "plain", "--json").data
    with screen(house, "sessions", "shell", made["id"]) as it:
        it.type(b"echo up-$((1+0))\n")
        it.until(b"up-1")
        house.ok("sessions", "rm", made["id"])
        assert it.code() != 0
        assert it.mode == it.before


def test_run_with_a_terminal(house: Installation) -> None:
    with screen(house, "run", "plain", "-q", "-t", "-i", "--", "sh", "-c", "tty; read x; echo got-$x; exit 3") as it:
        it.until(b"/dev/pts/0")
        it.type(b"it\n")
        it.until(b"got-it")
        assert it.code() == 3
        assert it.mode == it.before


def test_a_terminal_inside_needs_none_here(house: Installation, session: str) -> None:
    done = house.ok("sessions", "exec", session, "-t", "--", "stty", "size")
    assert done.out.split() == ["24", "80"]
    done = house.cli("sessions", "exec", session, "-t", "--json", "--", "true")
    assert done.code == 2
