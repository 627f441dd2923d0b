"""Messages of a command's WebSocket, as the installation's documentation of `/v1/sessions/{id}/exec` tells.

Binary ones begin with 0 (stdin), 1 (stdout) or 2 (stderr); texts are JSON. Each side sends at most the bytes that the
other one has made room for, so a reader that is slow slows the command, and no memory fills.
"""

import json
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sandbay.sdk.errors import BadAnswerError, SandbayError, TransferError, of_reason

CREDIT = 256 * 1024
"""Bytes that each side may send unasked."""

END_OF_INPUT = '{"eof":true}'
_PIECE = 64 * 1024
_STREAMS: dict[int, Literal["stdout", "stderr"]] = {1: "stdout", 2: "stderr"}


class Chunk(NamedTuple):
    """A piece of output, in order within its stream."""

    stream: Literal["stdout", "stderr"]
    data: bytes


Chunks = Generator[Chunk, None, None]
AsyncChunks = AsyncGenerator[Chunk, None]


@dataclass(frozen=True, slots=True)
class Room:
    """For this many more bytes of stdin."""

    size: int


@dataclass(frozen=True, slots=True)
class End:
    """How the command ended: its exit code, 128+n for signal n; or it was stopped at its time-out."""

    exit_code: int | None
    timed_out: bool


def start(command: Mapping[str, Any], *, stdin: bool, terminal: tuple[int, int] | None = None) -> str:
    """The first message: the body of the collected form, whether stdin will come, the terminal's rows and columns."""
    shown = {} if terminal is None else {"tty": True, "size": _size(*terminal)}
    return _text({"exec": command, "stdin": stdin, **shown})


def resizing(rows: int, columns: int) -> str:
    """The terminal has another size."""
    return _text({"resize": _size(rows, columns)})


def signalling(name: str) -> str:
    """A signal for the command, as `TERM`."""
    return _text({"signal": name})


def input_of(data: bytes) -> Iterator[bytes]:
    """Messages that carry stdin, none longer than is taken."""
    for begin in range(0, len(data), _PIECE):
        yield b"\0" + data[begin : begin + _PIECE]


def granting(size: int) -> str:
    """There is room for this many more bytes of output."""
    return _text({"credit": size})


def read(message: bytes | str) -> Chunk | Room | End:
    """What the server says. Raises the error that it tells of, or `BadAnswerError`."""
    if isinstance(message, bytes):
        if not message or message[0] not in _STREAMS:
            raise _nonsense()
        return Chunk(_STREAMS[message[0]], message[1:])
    try:
        said: Any = json.loads(message)
    except ValueError:
        raise _nonsense() from None
    match said:
        case {"credit": int(size)}:
            return Room(size)
        case {"refused": refusal}:
            raise of_reason(refusal)
        case {"error": error}:
            raise of_reason(error)
        case {"exit": int(code), "timed_out": False}:
            return End(code, timed_out=False)
        case {"exit": None, "timed_out": True}:
            return End(None, timed_out=True)
        case _:
            raise _nonsense()


def lost() -> SandbayError:
    """The error for a stream that stopped in the middle: what became of the command is unknown."""
    return TransferError("the command's output broke off before its end", code="stream_lost")


def _size(rows: int, columns: int) -> dict[str, int]:
    return {"rows": rows, "columns": columns}


def _text(message: Mapping[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


def _nonsense() -> BadAnswerError:
    return BadAnswerError("the command's output came in a form that is not an installation's", code="bad_answer")
