"""Decoding to the very end: every cut and every flipped bit is seen, and memory stays flat."""

import gzip
import random
import zlib
from collections.abc import Mapping
from hashlib import sha256

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.decode import decoder_for
from sandbay.engine.media import Compression

PLAIN = b"".join(b"%d " % n for n in range(700)) + bytes(3000)
SKIPPABLE = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"


def packed(compression: Compression, data: bytes) -> bytes:
    # A checksum in the frame is what layer builders write, and what lets a flipped bit be seen.
    options: Mapping[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    return gzip.compress(data, mtime=0) if compression is Compression.GZIP else zstd.compress(data, options=options)


def decode(compression: Compression, data: bytes, step: int = 100) -> bytes:
    decoder = decoder_for(compression)
    pieces = [piece for at in range(0, len(data), step) for piece in decoder.feed(data[at : at + step])]
    decoder.finish()
    return b"".join(pieces)


def refused(compression: Compression, data: bytes, step: int = 100) -> bool:
    try:
        decode(compression, data, step)
    except RefusedError as error:
        return error.refusal.reason is Reason.MALFORMED_LAYER
    return False


PACKED = pytest.mark.parametrize("compression", [Compression.GZIP, Compression.ZSTD])


@PACKED
@given(
    parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4), step=st.integers(1, 400), zeros=st.integers(0, 99)
)
def test_members_in_any_pieces_are_one_stream(
    compression: Compression, parts: list[bytes], step: int, zeros: int
) -> None:
    data = b"".join(packed(compression, part) for part in parts) + bytes(zeros)
    assert decode(compression, data, step) == b"".join(parts)


def member(flags: int, plain: bytes) -> bytes:
    """A gzip member with the optional parts of its header that these flags stand for, as the format's text has them."""
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    header += (300).to_bytes(2, "little") + b"\0e" * 150 if flags & 4 else b""
    header += b"some-name.tar\0" if flags & 8 else b""
    header += b"a comment\0" if flags & 16 else b""
    header += (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little") if flags & 2 else b""
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(plain) + packer.flush()
    return header + body + zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")


@given(parts=st.lists(st.tuples(st.integers(0, 31), st.binary(max_size=99)), min_size=1, max_size=4), data=st.data())
def test_headers_of_members_may_say_more_and_come_in_any_pieces(
    parts: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    blob = b"".join(member(*part) for part in parts)
    step = data.draw(st.integers(1, len(blob)))
    assert decode(Compression.GZIP, blob, step) == b"".join(plain for _, plain in parts)


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    "header",
    [
        b"\x1f\x8b\x07" + bytes(7),
        b"\x1f\x8b\x08\x20" + bytes(6),
        b"\x1f\x8b\x08\x80" + bytes(6),
        member(2, b"")[:10] + b"xx",
        b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (2 << 20),
    ],
    ids=["another method", "a reserved flag", "the last reserved flag", "its own checksum", "a name without end"],
)
def test_headers_that_are_none(header: bytes, step: int) -> None:
    step = step if len(header) < 1000 else 1 << 16
    assert refused(Compression.GZIP, header + member(0, PLAIN)[10:], step)


@PACKED
def test_every_cut_is_seen(compression: Compression) -> None:
    data = packed(compression, PLAIN)
    assert [cut for cut in range(len(data)) if not refused(compression, data[:cut])] == []
    two = data + data
    passed = [cut for cut in range(len(data), len(two)) if not refused(compression, two[:cut])]
    assert passed == [len(data)]


@PACKED
def test_no_flipped_bit_yields_other_bytes(compression: Compression) -> None:
    data = packed(compression, PLAIN)
    for at in range(len(data)):
        bad = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        assert refused(compression, bad) or decode(compression, bad) == PLAIN


@PACKED
@pytest.mark.parametrize("behind", [b"x", b"\0x", bytes(1000) + b"x", b"\0\x1f\x8b", b"\x1f\x8b", b"(\xb5/\xfd"])
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_nothing_may_follow_but_zeros(compression: Compression, behind: bytes, step: int) -> None:
    assert refused(compression, packed(compression, PLAIN) + behind, step)


@PACKED
@pytest.mark.parametrize("data", [b"", b"\0" * 600, PLAIN, sha256(b"noise").digest()], ids=str)
def test_what_is_not_packed_at_all(compression: Compression, data: bytes) -> None:
    assert refused(compression, data)


def test_one_compression_is_not_taken_for_the_other() -> None:
    assert refused(Compression.GZIP, packed(Compression.ZSTD, PLAIN))
    assert refused(Compression.ZSTD, packed(Compression.GZIP, PLAIN))
    assert decode(Compression.PLAIN, packed(Compression.GZIP, PLAIN)) == packed(Compression.GZIP, PLAIN)


def test_skippable_frames_are_skipped() -> None:
    data = packed(Compression.ZSTD, PLAIN)
    assert decode(Compression.ZSTD, SKIPPABLE + data + SKIPPABLE + data) == PLAIN * 2


def test_a_window_that_takes_too_much_memory_is_refused() -> None:
    long = zstd.CompressionParameter.enable_long_distance_matching
    options: Mapping[int, int] = {zstd.CompressionParameter.window_log: 28, long: 1}
    compressor = zstd.ZstdCompressor(options=options)
    noise = random.Random(1).randbytes(1000)  # noqa: S311 - any bytes do
    data = compressor.compress(noise) + compressor.flush()
    assert refused(Compression.ZSTD, data)


@PACKED
def test_pieces_are_bounded_however_much_a_chunk_holds(compression: Compression) -> None:
    decoder = decoder_for(compression)
    lengths = [len(piece) for piece in decoder.feed(packed(compression, bytes(64 << 20)))]
    decoder.finish()
    assert sum(lengths) == 64 << 20
    assert max(lengths) <= 1 << 20
