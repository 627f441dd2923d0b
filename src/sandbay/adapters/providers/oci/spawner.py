"""What the node and a sandbox's spawner say to each other, as `native/spawner.c` has it.

The sandbox is hostile, and should it ever speak in its spawner's place, then what it says has to be one of few
things of fixed size, or it is nothing. No process number is ever taken from there.
"""

import errno
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from sandbay.adapters.providers.oci.bundle import Program
from sandbay.adapters.providers.oci.programs import NOT_EXECUTABLE, NOT_FOUND
from sandbay.adapters.providers.oci.streams import NotStarted
from sandbay.domain.reasons import Reason

_MAGIC = 0x53424E32
_REQUEST = struct.Struct("=7I2H")
_ANSWER = struct.Struct("=Ii")
_EXITED, _DUMPED, _SIGNAL = 0xFF00, 0x80, 0x7F
"""The parts of a wait status."""


ENDINGS: Mapping[int, str] = {
    1: "it could not make its socket",
    2: "it could not install the filter of system calls",
}
"""Exit codes of a spawner that does not come up."""


class Kind(IntEnum):
    """What an answer is about."""

    STARTED = 1
    ENDED = 2
    NOT_SET_UP = 3
    NO_FOLDER = 4
    NO_PROGRAM = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is nothing, a wait status, or why not (errno); `terminal` a descriptor that is now the reader's."""

    kind: Kind
    value: int
    terminal: int | None = None


class BadAnswerError(Exception):
    """Not what a spawner says."""


def request(program: Program, size: int) -> bytes:
    """The message that asks for a program whose document has `size` bytes."""
    user, terminal = program.user, program.terminal
    window = (0, 0) if terminal is None else (terminal.rows, terminal.columns)
    counts = (len(user.groups), len(program.argv), len(program.env))
    return _REQUEST.pack(_MAGIC, size, user.uid, user.gid, *counts, *window)


def document(program: Program) -> bytes:
    """What goes beside the message, as long as it takes."""
    variables = [f"{name}={value}" for name, value in program.env.items()]
    texts = [program.file, program.workdir, *program.argv, *variables]
    groups = struct.pack(f"={len(program.user.groups)}I", *program.user.groups)
    return groups + b"".join(text.encode() + b"\0" for text in texts)


def receive(answers: socket.socket) -> Answer | None:
    """The next answer, or None when no more comes. Raises `BadAnswerError` and `TimeoutError`."""
    try:
        data, fds, flags, _ = socket.recv_fds(answers, _ANSWER.size + 1, 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    try:
        answer = None if not data and not fds else read(data, fds, flags)
    except BadAnswerError:
        for fd in fds:
            os.close(fd)
        raise
    return answer


def read(data: bytes, fds: Sequence[int], flags: int = 0) -> Answer:
    """An answer from a message and its descriptors, which stay the caller's when it is none."""
    if len(data) != _ANSWER.size or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise BadAnswerError("the message is not of the right size")
    number, value = _ANSWER.unpack(data)
    try:
        kind = Kind(number)
    except ValueError:
        raise BadAnswerError("the message is of no kind") from None
    if len(fds) > (kind is Kind.STARTED):
        raise BadAnswerError("the message has descriptors")
    if value < 0 or (kind is Kind.ENDED and _code(value) is None):
        raise BadAnswerError("the message has no value")
    return Answer(kind, value, fds[0] if fds else None)


def exit_code(answer: Answer) -> int:
    """How the program ended, 128+n for signal n, from an answer of that kind."""
    code = _code(answer.value)
    if code is None:
        raise BadAnswerError("no program ends like this")
    return code


def _code(status: int) -> int | None:
    if status & ~_EXITED == 0:
        return status >> 8
    return 128 + (status & _SIGNAL) if 0 < status & ~_DUMPED < _SIGNAL else None


_PROGRAM_ERRORS: Mapping[int, int | None] = {
    errno.ENOENT: NOT_FOUND,
    errno.ENOTDIR: NOT_FOUND,
    # These are about the call or the host and not about the file.
    errno.E2BIG: None,
    errno.ENOMEM: None,
    errno.EAGAIN: None,
    errno.ENFILE: None,
    errno.EMFILE: None,
}


def not_started(answer: Answer) -> NotStarted:
    """Why there is no program, from an answer that says so."""
    says = os.strerror(answer.value)
    match answer.kind:
        case Kind.NO_FOLDER:
            return NotStarted(says, Reason.INVALID_WORKDIR)
        case Kind.NO_PROGRAM:
            return NotStarted(says, _PROGRAM_ERRORS.get(answer.value, NOT_EXECUTABLE))
        case _ if answer.value == errno.EAGAIN:
            return NotStarted("the sandbox is at its limit of processes")
        case _:
            return NotStarted(says)
