"""Unpacking a layer's compression, in bounded pieces and to the very end.

The whole blob has to be what its media type says: every member or frame complete and checked, nothing unread
behind the last one but zero padding. Everything else is `malformed_layer`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, cast

from backports import zstd
from isal import igzip_lib

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.gzip_member import GzipMember, HeaderError
from sandbay.engine.media import Compression

_PIECE = 1 << 20
# What the zstd command itself accepts by default: 128 MiB of window.
_WINDOW: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
# The library's stub declares an instance where the class is.
_GZIP_FAULTS = (HeaderError, cast("type[Exception]", igzip_lib.IsalError))
# What a member does not need it hands back as a copy: of many small ones in a large chunk that would be the square.
_SLICE = 1 << 16


class Decoder(Protocol):
    """Takes packed bytes chunk by chunk."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The plain bytes of the next chunk, at most 1 MiB at a time. To be run to its end."""

    def finish(self) -> None:
        """The blob has ended. Refuses when the packed stream has not."""


class _Member(Protocol):
    """One gzip member or zstd frame: the interface that both libraries share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Plain:
    def feed(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk

    def finish(self) -> None:
        """A plain tar has no end of its own; the tar reader judges that."""


class _Members:
    """One or more members back to back."""

    def __init__(self, make: Callable[[], _Member], *faults: type[Exception]) -> None:
        self._make, self._faults = make, faults
        self._member: _Member | None = None
        self._members = 0
        self._padding = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        for at in range(0, len(chunk), _SLICE):
            rest = chunk[at : at + _SLICE]
            while rest:
                if self._member is None and not self._begin(rest):
                    break
                yield from self._decompress(rest)
                rest = self._end()

    def finish(self) -> None:
        if self._member is not None or not self._members:
            raise _malformed("it ends early")

    def _begin(self, chunk: bytes) -> bool:
        """Start the next member; zeros behind the last one are padding and start none."""
        if self._members and (self._padding or chunk[0] == 0):
            self._padding = True
            if chunk.strip(b"\0"):
                raise _malformed("there is something behind its end")
            return False
        self._member = self._make()
        return True

    def _decompress(self, chunk: bytes) -> Iterator[bytes]:
        member = self._member
        if member is None:
            return
        try:
            piece = member.decompress(chunk, _PIECE)
            yield piece
            while not member.eof and not member.needs_input:
                piece = member.decompress(b"", _PIECE)
                yield piece
        except self._faults as error:
            raise _malformed(str(error)) from None

    def _end(self) -> bytes:
        """What is left of the chunk when the member is over."""
        member = self._member
        if member is None or not member.eof:
            return b""
        self._member = None
        self._members += 1
        return member.unused_data


def _malformed(why: str) -> RefusedError:
    return RefusedError(Reason.MALFORMED_LAYER, f"the layer's compression is damaged: {why}")


def decoder_for(compression: Compression) -> Decoder:
    """A fresh decoder."""
    match compression:
        case Compression.GZIP:
            return _Members(GzipMember, *_GZIP_FAULTS)
        case Compression.ZSTD:
            return _Members(lambda: zstd.ZstdDecompressor(options=_WINDOW), zstd.ZstdError)
        case Compression.PLAIN:
            return _Plain()
