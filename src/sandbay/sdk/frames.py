"""The streamed form of an exec: kind (1 byte), length (4 bytes, big-endian), payload, again and again.

1 is standard output, 2 standard error, 3 the end, as JSON: `{exit_code, timed_out}` or an error's envelope.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sandbay.sdk.errors import BadAnswerError, SandbayError, TransferError, of_reason

MEDIA_TYPE = "application/vnd.sandbay.exec-stream"
LONGEST = 16 * 1024 * 1024
"""A longer frame is none of ours; a server sends far shorter ones."""

_HEAD = 5
_END = 3
_STREAMS: dict[int, Literal["stdout", "stderr"]] = {1: "stdout", 2: "stderr"}


class Chunk(NamedTuple):
    """A piece of output, in order within its stream."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """How the command ended: its exit code, 128+n for signal n; or it was stopped at its time-out."""

    exit_code: int | None
    timed_out: bool


class Frames:
    """Takes bytes in pieces of any size, gives chunks; `end` is set when the command has ended."""

    def __init__(self) -> None:
        self.end: End | None = None
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that are now whole. Raises the error that the end frame carries, or `BadAnswerError`."""
        self._held += data
        while len(self._held) >= _HEAD:
            kind, length = self._held[0], int.from_bytes(self._held[1:_HEAD])
            if length > LONGEST or (kind != _END and kind not in _STREAMS) or self.end is not None:
                raise _nonsense()
            if len(self._held) < _HEAD + length:
                return
            payload = bytes(memoryview(self._held)[_HEAD : _HEAD + length])
            del self._held[: _HEAD + length]
            if kind == _END:
                self.end = _end_of(payload)
            elif payload:
                yield Chunk(_STREAMS[kind], payload)

    def finish(self) -> End:
        """The end; raises `stream_lost` when the bytes stopped before it."""
        if self.end is None:
            raise lost()
        if self._held:
            raise _nonsense()
        return self.end


def lost() -> SandbayError:
    """The error for a stream that stopped in the middle: what became of the command is unknown."""
    return TransferError("the command's output broke off before its end", code="stream_lost")


def _end_of(payload: bytes) -> End:
    try:
        data: Any = json.loads(payload)
    except ValueError:
        raise _nonsense() from None
    if not isinstance(data, dict):
        raise _nonsense()
    if "error" in data:
        raise of_reason(data["error"])
    code, timed_out = data.get("exit_code"), data.get("timed_out", False)
    if not isinstance(timed_out, bool) or not (isinstance(code, int) or (code is None and timed_out)):
        raise _nonsense()
    return End(code, timed_out)


def _nonsense() -> BadAnswerError:
    return BadAnswerError("the command's output came in a form that is not an installation's", code="bad_answer")
