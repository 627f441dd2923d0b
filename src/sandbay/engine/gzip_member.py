"""One gzip member, in pieces of any size.

isal loses its place in a header with optional fields that comes in pieces, and then refuses what is whole. So headers
are read here, strictly, and isal decodes and checks what follows.
"""

import zlib

from isal import igzip_lib

_MAGIC = b"\x1f\x8b\x08"
"""A member begins with this; the 8 is deflate, the only method there is."""
_FIXED = 10
_CHECKED, _EXTRA, _NAME, _COMMENT, _RESERVED = 2, 4, 8, 16, 0xE0
_MOST_HEADER = 1 << 20


class HeaderError(ValueError):
    """It is no header of a gzip member."""


class GzipMember:
    """The interface of the standard library's decompressors. Raises `HeaderError` and isal's own fault."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._rest: igzip_lib.IgzipDecompressor | None = None

    @property
    def eof(self) -> bool:
        """Whether the member has ended, trailer included."""
        return self._rest is not None and self._rest.eof

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes without more input."""
        return self._rest is None or self._rest.needs_input

    @property
    def unused_data(self) -> bytes:
        """What stands behind the end."""
        return b"" if self._rest is None else self._rest.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """At most so many plain bytes."""
        if self._rest is None:
            self._header += data
            length = _length(self._header)
            if length is None:
                return b""
            data = bytes(memoryview(self._header)[length:])
            self._header = bytearray()
            self._rest = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP_NO_HDR_VER)
        return self._rest.decompress(data, max_length)


def _length(seen: bytearray) -> int | None:
    """How long the header is, or None as long as it is not all there."""
    if not seen.startswith(_MAGIC[: len(seen)]):
        raise HeaderError("a member does not begin as one")
    if len(seen) < _FIXED:
        return None
    flags = seen[3]
    if flags & _RESERVED:
        raise HeaderError("a member's header has reserved flags")
    end: int | None = _FIXED
    if flags & _EXTRA:
        end = _FIXED + 2 + int.from_bytes(seen[_FIXED : _FIXED + 2], "little") if len(seen) >= _FIXED + 2 else None
    for text in (_NAME, _COMMENT):
        if flags & text and end is not None:
            end = seen.find(0, end) + 1 or None
    if flags & _CHECKED and end is not None:
        end = _checked(seen, end)
    if end is not None and end <= len(seen):
        return end
    if len(seen) > _MOST_HEADER:
        raise HeaderError("a member's header does not end")
    return None


def _checked(seen: bytearray, end: int) -> int:
    """Where the header's own checksum ends."""
    if len(seen) >= end + 2 and int.from_bytes(seen[end : end + 2], "little") != zlib.crc32(seen[:end]) & 0xFFFF:
        raise HeaderError("a member's header is damaged")
    return end + 2
