"""Unpacking one layer in a confined child process: the parent's side.

    with Unpacker(staging, limits) as unpacker:
        for chunk in plain_tar: unpacker.feed(chunk)
        outcome = unpacker.finish()

The parent hashes and decodes, the child writes. A child that is killed or crashes says nothing about the layer:
that is `UnpackFaultError`, never a refusal.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.lower import Needs
from sandbay.engine.unpack_child import Order

_PIPE = 1 << 20
# The child's limits on what it remembers keep an answer far below this, escapes included.
_MOST_ANSWER = 1 << 28
# Isolated and without site: nothing of the environment decides what the child imports.
_INTERPRETER = ("-I", "-S", "-X", "utf8", "-c")
_START = "import sys; sys.path.append(sys.argv.pop()); from sandbay.engine.unpack_child import main; main()"
_PACKAGES = str(Path(__file__).resolve().parents[2])


class UnpackFaultError(RuntimeError):
    """The unpacker itself failed; the layer may be as good as any."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What a layer was. Paths are text, undecodable bytes as surrogate escapes, without a slash at either end."""

    entries: int
    """Files, folders, links and marks, those included that no entry named."""
    bytes: int
    """The sizes of its files together."""
    implied: tuple[str, ...]
    """Folders that no entry describes; what they are depends on the lower layers."""
    late: tuple[tuple[str, str], ...]
    """(path, target) of hard links to what is not in this layer; they are not in the tree."""
    whiteouts: tuple[str, ...]
    """Folders in which a whiteout stands, or that hold nothing but an opaque marker."""

    @property
    def needs(self) -> Needs:
        """For `lower.needs_lower_view`."""
        return Needs(self.implied, self.late, self.whiteouts)


class Unpacker:
    """One layer on its way into the empty folder `into`, which its caller removes if anything goes wrong.

    `lowers` is None for a layer alone. A sequence, even an empty one, means over its parents, which are trees in one
    folder, topmost first: implied folders and links then become what they are there.
    """

    def __init__(self, into: Path, limits: Limits, lowers: Sequence[Path] | None = None) -> None:
        self._order = Order(str(into), limits, None if lowers is None else tuple(map(str, lowers)))
        self._process: subprocess.Popen[bytes] | None = None
        self._refused = False

    def __enter__(self) -> Self:
        command = [sys.executable, *_INTERPRETER, _START, self._order.to_json(), _PACKAGES]
        if sys.dont_write_bytecode:
            command.insert(1, "-B")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env={}, cwd="/")
        with contextlib.suppress(OSError):
            fcntl.fcntl(_stream(self._process.stdin), fcntl.F_SETPIPE_SZ, _PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._running()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                _stream(stream).close()

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the plain tar. Once the child has made up its mind they go nowhere."""
        view = memoryview(chunk)
        stdin = _stream(self._running().stdin).fileno()
        while view and not self._refused:
            try:
                view = view[os.write(stdin, view) :]
            except BrokenPipeError:
                self._refused = True

    def finish(self) -> Unpacked | Refusal:
        """The tar has ended: what it was, or why not. Raises `UnpackFaultError`."""
        process = self._running()
        _stream(process.stdin).close()
        answer = _read(process.stdout, _MOST_ANSWER)
        said = _read(process.stderr, _PIPE)
        code = process.wait()
        if code == -signal.SIGXCPU:
            most = self._order.limits.cpu_seconds
            return exceeded("cpu_seconds", most + 1, most)
        try:
            told = json.loads(answer)
        except ValueError:
            raise UnpackFaultError(f"the unpacker ended with {code}: {said.decode(errors='replace')[-2000:]}") from None
        return _outcome(told)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ValueError("an unpacker is used as a context manager")
        return self._process


def _outcome(told: dict[str, Any]) -> Unpacked | Refusal:
    if (refusal := told.get("refusal")) is not None:
        return Refusal(Reason(refusal["reason"]), refusal["message"], details=refusal["details"])
    if (unpacked := told.get("unpacked")) is not None:
        late = tuple((path, target) for path, target in unpacked["late"])
        paths = (tuple(unpacked["implied"]), late, tuple(unpacked["whiteouts"]))
        return Unpacked(unpacked["entries"], unpacked["bytes"], *paths)
    raise UnpackFaultError(str(told.get("fault")))


def _read(stream: IO[bytes] | None, most: int) -> bytes:
    """All that is said until the end, or as much as anybody may say."""
    pieces: list[bytes] = []
    while most and (piece := _stream(stream).read(min(most, _PIPE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("every stream of the unpacker is a pipe")
    return stream
