"""Programs started by a sandbox's spawner: one message there, and two back."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path

from sandbay.adapters.providers.oci import spawner
from sandbay.adapters.providers.oci.bundle import Program
from sandbay.adapters.providers.oci.calls import Call, Sandbox
from sandbay.adapters.providers.oci.cgroups import Cgroups, below
from sandbay.adapters.providers.oci.pipes import Pipes
from sandbay.adapters.providers.oci.spawner import Answer, BadAnswerError, Kind
from sandbay.adapters.providers.oci.spawners import Spawner
from sandbay.adapters.providers.oci.streams import START_SECONDS, NotStarted
from sandbay.adapters.providers.oci.terminal import Terminal
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

_KILLED = 137


class UnreachableError(Exception):
    """The spawner has not taken the request: nothing runs, and somebody else may be asked."""


class SpawnerExec:
    """The way through one sandbox's spawner."""

    def __init__(self, cgroups: Cgroups, listener: Spawner) -> None:
        """For one call."""
        self._cgroups, self._listener = cgroups, listener

    def streams(self, _folder: Path, call: Call, /) -> Pipes | Terminal:
        """What the program gets as its streams."""
        return Pipes(call.stdin) if call.terminal is None else Terminal(call.stdin)

    def start(self, sandbox: Sandbox, program: Program, folder: Path, streams: Pipes | Terminal) -> "Spawned":
        """Ask for the program, in the group that is named like the exec's folder. Raises `UnreachableError`."""
        document = spawner.document(program)
        group = below(self._cgroups.members, sandbox.group) / folder.name / "cgroup.procs"
        with ExitStack() as undo, ExitStack() as ours:
            answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.enter_context(answers)
            ours.enter_context(theirs)
            fds = [theirs.fileno(), _open(ours, os.open(group, os.O_WRONLY | os.O_CLOEXEC))]
            fds.append(_open(ours, os.memfd_create("program", os.MFD_CLOEXEC)))
            _write(fds[-1], document)
            try:
                request = spawner.request(program, len(document))
                socket.send_fds(self._listener.control, [request], [*fds, *streams.give()], socket.MSG_NOSIGNAL)
            except OSError as error:
                raise UnreachableError from error
            undo.pop_all()
        return Spawned(answers, streams)


class Spawned:
    """How a program fares, as the spawner, and for a moment its child, tells."""

    def __init__(self, answers: socket.socket, streams: Pipes | Terminal) -> None:
        answers.settimeout(START_SECONDS)
        self._answers, self._streams = answers, streams

    def fileno(self) -> int:
        """Of the socket that came with the request."""
        return self._answers.fileno()

    def started(self) -> int | NotStarted | None:
        """Refuses with `start_failed` when it takes too long. Raises `UnreachableError`."""
        try:
            answer = self._answer()
        except TimeoutError:
            raise RefusedError(Reason.START_FAILED, "the sandbox took too long to start the program") from None
        if answer is None:
            raise UnreachableError
        if answer.kind is not Kind.STARTED:
            return self._judge(answer)
        if answer.terminal is not None:
            self._take(answer.terminal)
        return None

    def ended(self) -> int | NotStarted:
        """Refuses with `internal` when what is said is no end."""
        answer = self._answer()
        # With the first process of a sandbox, every other one of it is killed.
        return _KILLED if answer is None else self._judge(answer)

    def close(self) -> None:
        """Stop listening."""
        self._answers.close()

    def _judge(self, answer: Answer) -> int | NotStarted:
        if answer.kind is Kind.STARTED:
            raise _strange()
        return spawner.exit_code(answer) if answer.kind is Kind.ENDED else spawner.not_started(answer)

    def _answer(self) -> Answer | None:
        try:
            return spawner.receive(self._answers)
        except BadAnswerError as error:
            raise _strange() from error

    def _take(self, terminal: int) -> None:
        if isinstance(self._streams, Terminal):
            self._streams.take(terminal)
        else:
            os.close(terminal)
            raise _strange()


def _strange() -> RefusedError:
    return RefusedError(Reason.INTERNAL, "the sandbox's first process said what it never says")


def _open(stack: ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


def _write(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]
