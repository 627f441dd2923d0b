"""Provider suite: programs that have a terminal, and steering those that run."""

import signal
import threading
from collections.abc import Iterator

import pytest

from sandbay.domain.command import TerminalSize
from sandbay.domain.declaration import Ability
from sandbay.ports.provider import Steering
from tests.contracts.provider_harness import GENEROUS, Offer, ProviderHarness, Ran, Sandbox, needs, start

SIZE, OTHER = TerminalSize(33, 101), TerminalSize(50, 132)


class TerminalSuite:
    @pytest.fixture
    def box(self, harness: ProviderHarness) -> Sandbox:
        if Ability.PTY not in harness.provider.declaration.abilities:
            pytest.skip("this provider declares no pty")
        return start(harness, harness.variants.web)

    def test_what_a_terminal_shows_is_one_stream(self, box: Sandbox) -> None:
        ran = box.sh("echo out; echo err >&2; exit 7", terminal=SIZE)
        assert (ran.code, ran.stdout, ran.stderr) == (7, b"out\r\nerr\r\n", b"")

    def test_a_terminal_has_a_size_and_a_type(self, box: Sandbox) -> None:
        assert box.run("stty", "size", terminal=SIZE).lines == ["33 101"]
        assert "TERM=xterm" in box.run("env", terminal=SIZE).lines
        assert "TERM=dumb" in box.run("env", terminal=SIZE, env={"TERM": "dumb"}).lines
        assert not [line for line in box.run("env").lines if line.startswith("TERM=")]

    def test_a_terminal_is_resized_while_its_program_runs(self, box: Sandbox) -> None:
        resized = threading.Event()

        def on_start(steering: Steering) -> None:
            steering.resize(OTHER)
            resized.set()

        def typed() -> Iterator[bytes]:
            """Nothing, until then."""
            assert resized.wait(GENEROUS)
            yield from ()

        assert box.sh("cat; stty size", stdin=typed(), terminal=SIZE, on_start=on_start).lines == ["50 132"]

    @pytest.mark.parametrize("terminal", [None, SIZE])
    def test_a_signal_reaches_the_program(self, box: Sandbox, terminal: TerminalSize | None) -> None:
        ran = box.run("sleep", "4320", terminal=terminal, on_start=lambda steering: steering.signal(signal.SIGTERM))
        assert (ran.code, ran.exit.timed_out) == (143, False)

    def test_steering_what_has_ended_does_nothing(self, box: Sandbox) -> None:
        kept: list[Steering] = []
        assert box.run("true", terminal=SIZE, on_start=kept.append).code == 0
        kept[0].resize(OTHER)
        kept[0].signal(signal.SIGTERM)
        assert box.run("echo", "well").stdout == b"well\n"

    def test_a_time_out_ends_what_has_a_terminal(self, box: Sandbox) -> None:
        ran = box.sh("echo begun; sleep 4321", terminal=SIZE, timeout=0.5)
        assert (ran.exit.timed_out, ran.stdout) == (True, b"begun\r\n")

    def test_the_terminal_is_the_sandboxes_own(self, box: Sandbox) -> None:
        needs(box.harness, Offer.SHELL)
        ran = box.sh("test -t 0 && test -t 1 && test -t 2 && tty", terminal=SIZE)
        assert (ran.code, ran.lines) == (0, ["/dev/pts/0"])
        assert box.sh("tty", terminal=SIZE, user="agent").lines == ["/dev/pts/0"]
        assert box.sh("echo >/dev/tty", terminal=SIZE, user="agent").code == 0

    def test_an_interrupt_that_is_typed_interrupts(self, box: Sandbox) -> None:
        needs(box.harness, Offer.SHELL)
        ran = self._typing(box, "echo ready; sleep 4322; echo no", b"\x03")
        assert (ran.code, ran.exit.timed_out) == (130, False)
        assert b"no\r\n" not in ran.stdout

    def test_nothing_that_is_shown_is_lost(self, box: Sandbox) -> None:
        needs(box.harness, Offer.SHELL)
        for line in ("seq 1 20000", "exec seq 1 2000"):
            numbers = range(1, int(line.split()[-1]) + 1)
            assert box.sh(line, terminal=SIZE).lines == [str(n) for n in numbers]

    def test_what_stays_in_the_terminal_does_not_hang_the_call(self, box: Sandbox) -> None:
        needs(box.harness, Offer.SHELL)
        ran = box.sh("trap '' HUP; sleep 4323 & echo done", terminal=SIZE)
        assert (ran.code, ran.stdout, ran.exit.timed_out) == (0, b"done\r\n", False)

    @staticmethod
    def _typing(box: Sandbox, line: str, keys: bytes) -> Ran:
        """Type after the first output, and then nothing more until the end."""
        ready, over = threading.Event(), threading.Event()

        def typed() -> Iterator[bytes]:
            assert ready.wait(GENEROUS)
            yield keys
            over.wait(GENEROUS)

        try:
            return box.sh(line, stdin=typed(), terminal=SIZE, heard=ready)
        finally:
            over.set()
