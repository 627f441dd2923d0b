"""One layer from its blob into a folder: every byte counted and hashed, decoded, unpacked, judged in fixed order.

The verdict is size, digest, compression, the unpacker's reason, diff id: a blob whose bytes are not the right
ones says so, whatever its wrong bytes did further down. So hashing goes on after the rest has failed.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Layer
from sandbay.engine.decode import decoder_for
from sandbay.engine.digest import Tally, chunks_of, read_anew
from sandbay.engine.durable import remove_tree
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.media import LAYERS
from sandbay.engine.unpack import Unpacked, Unpacker
from sandbay.ports.blobs import Blobs

_ENTRY_BYTES = 2048
"""Headers and padding of one entry, generously."""

Told = Callable[[int], None]
"""Called with the bytes of the blob that have been read since the last call."""


class _Plain:
    """The decoded side: from packed chunks to the sink, until something is wrong with them."""

    def __init__(self, layer: Layer, sink: Callable[[bytes], None], limits: Limits) -> None:
        self._layer, self._sink = layer, sink
        self._decoder = decoder_for(LAYERS[layer.media_type])
        self._hash = hashlib.sha256()
        self._length = 0
        self._most = limits.unpacked_bytes + limits.entries * _ENTRY_BYTES
        self._fault: RefusedError | None = None

    def feed(self, chunk: bytes) -> None:
        if self._fault is not None:
            return
        try:
            for piece in self._decoder.feed(chunk):
                self._hash.update(piece)
                self._sink(piece)
                self._length += len(piece)
                if self._length > self._most:
                    raise RefusedError.of(exceeded("unpacked_bytes", self._length, self._most))
        except RefusedError as error:
            self._fault = error

    def finish(self) -> None:
        """Raise what was wrong with the compression."""
        if self._fault is not None:
            raise self._fault
        self._decoder.finish()

    def check(self) -> None:
        """Refuse with `diff_id_mismatch` when it was another tar than the config lists."""
        found = "sha256:" + self._hash.hexdigest()
        if found != self._layer.diff_id:
            raise RefusedError(
                Reason.DIFF_ID_MISMATCH,
                f"the layer {self._layer.digest} unpacks to {found}, the config lists {self._layer.diff_id}",
                details={"digest": self._layer.digest, "diff_id": self._layer.diff_id, "found": found},
            )


def _feed(blobs: Blobs, layer: Layer, decoded: _Plain, told: Told) -> None:
    """Read the whole blob; refuse by size, digest and compression, in this order."""
    tally = Tally(layer.digest, layer.size)
    with blobs.open(layer.digest) as file:
        for chunk in chunks_of(file):
            tally.add(chunk)
            decoded.feed(chunk)
            told(len(chunk))
    tally.check()
    decoded.finish()


def unpack_layer(
    blobs: Blobs, layer: Layer, into: Path, *, lowers: Sequence[Path] | None, limits: Limits, told: Told
) -> Unpacked:
    """Unpack a layer into an empty folder, over `lowers` (topmost first) or, for None, by itself.

    Refuses with reasons of the groups content and transfer or with `no_space`; what is in the folder then is the
    caller's to remove.
    """

    def unpack() -> Unpacked:
        remove_tree(into)
        into.mkdir(mode=0o700)
        return _unpack(blobs, layer, into, lowers, limits, told)

    return read_anew(blobs, layer.digest, unpack)


def _unpack(
    blobs: Blobs, layer: Layer, into: Path, lowers: Sequence[Path] | None, limits: Limits, told: Told
) -> Unpacked:
    with Unpacker(into, limits, lowers) as unpacker:
        decoded = _Plain(layer, unpacker.feed, limits)
        _feed(blobs, layer, decoded, told)
        outcome = unpacker.finish()
    if isinstance(outcome, Refusal):
        raise RefusedError.of(outcome)
    decoded.check()
    return outcome


def prove_layer(blobs: Blobs, layer: Layer, *, limits: Limits, told: Told) -> None:
    """See that a blob is the tar of its diff id, unpacking nothing. Refuses with reasons of the group content."""

    def prove() -> None:
        decoded = _Plain(layer, lambda _: None, limits)
        _feed(blobs, layer, decoded, told)
        decoded.check()

    read_anew(blobs, layer.digest, prove)
