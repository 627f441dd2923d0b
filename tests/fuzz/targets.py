"""What is fuzzed. Each target takes any bytes and raises only where a promise of the product is broken.

The promises: a stranger's bytes give a value or a refusal with a name, never a traceback; however the bytes arrive in
pieces, they give the same; and what is read means what another reader of the format would take it for.
"""

import contextlib
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import Malformed, parse_image, parse_oci, parse_registry
from sandbay.engine.decode import decoder_for
from sandbay.engine.documents import read_document
from sandbay.engine.limits import Limits
from sandbay.engine.manifest import parse_config, parse_index, parse_manifest
from sandbay.engine.media import Compression
from sandbay.engine.tar import TarError, TarLimitError, TarReader
from tests.support.tar_entries import Entry, device, file, folder, hardlink, pax_record, symlink, tar, whiteout

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_LIMITS = Limits(header_bytes=1 << 16, sparse_segments=1000)
_PIECE = 13
_MOST_PLAIN = 1 << 22


@dataclass(frozen=True)
class Target:
    """`seeds` are what the search begins with, by name."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Mapping[str, bytes]]


def _tar(data: bytes) -> None:
    whole, slow = io.BytesIO(data), io.BytesIO(data)
    assert _entries(whole.readinto) == _entries(lambda buffer: slow.readinto(buffer[:_PIECE])), "pieces change it"


def _entries(readinto: Callable[[memoryview], int]) -> tuple[list[object], str]:
    seen: list[object] = []
    try:
        reader = TarReader(readinto, _LIMITS)
        for entry in reader:
            stored = sum(len(piece) for piece in reader.body())
            assert stored == entry.stored, "the data has another length than was said"
            assert min(entry.size, entry.stored, entry.uid, entry.gid, *entry.device) >= 0
            assert entry.segments is None or sum(length for _, length in entry.segments) == stored
            seen.append((entry.name, entry.kind, entry.size, entry.link, entry.uid, entry.mtime_ns, entry.xattrs))
    except (TarError, TarLimitError) as error:
        return seen, type(error).__name__
    return seen, "read"


def _reference(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    parse_image(text)
    parse_registry(text)
    parsed = parse_oci(text)
    if not isinstance(parsed, Malformed):
        again = parse_oci(str(parsed))
        assert not isinstance(again, Malformed), "the canonical form is none"
        assert (str(again), again.domain, again.path, again.digest) == (
            *(str(parsed), parsed.domain, parsed.path, parsed.digest),
        )


def _manifest(data: bytes) -> None:
    try:
        members = read_document(data, Reason.MALFORMED_MANIFEST, "document").members
    except RefusedError:
        members = None
    assert members is None or members == json.loads(data), "two readers read two things"
    for parse in (parse_index, lambda it: parse_manifest(it, _LIMITS), parse_config):
        try:
            parse(data)
        except RefusedError:
            continue
        assert members is not None, "what is no document was read as one"


def _decode(data: bytes) -> None:
    compression = tuple(Compression)[data[0] % len(Compression)] if data else Compression.PLAIN
    packed = data[1:]
    whole, pieces = (_plain(compression, packed, step) for step in (len(packed) or 1, _PIECE))
    if compression is Compression.ZSTD and None in (whole, pieces):
        return  # the library itself bears some damage in pieces that it does not bear whole
    assert whole == pieces, "pieces change it"


def _plain(compression: Compression, packed: bytes, step: int) -> bytes | None:
    """None where it is refused, or where it is too much to look at."""
    decoder, plain = decoder_for(compression), bytearray()
    try:
        for at in range(0, len(packed), step):
            for piece in decoder.feed(packed[at : at + step]):
                plain += piece
                if len(plain) > _MOST_PLAIN:
                    return None
        decoder.finish()
    except RefusedError:
        return None
    return bytes(plain)


def _tars() -> Mapping[str, bytes]:
    odd = [
        folder("d", mode=0o2750),
        file("d/f", "text", xattrs={"user.a": b"=\n\0"}),
        symlink("s", "d/f"),
        hardlink("h", "d/f"),
        device("c", 5, 1),
        whiteout("gone"),
        file("n" * 300, "long", uid=3_000_000),
    ]
    sparse = pax_record(b"GNU.sparse.map", b"0,1,5,2") + pax_record(b"GNU.sparse.size", b"9")
    packed = [Entry(b"x", kind=b"x", data=sparse), file("sparse", b"123"), Entry(b"g", kind=b"g", data=b"9 gid=77\n")]
    own = {"odd": tar(odd), "sparse": tar(packed), "empty": bytes(1024)}
    return own | {str(number): layer for number, layer in enumerate(_layers()) if len(layer) < 1 << 15}


def _layers() -> Iterator[bytes]:
    """Plain tars of the awkward images' layers."""
    for path in sorted(_FIXTURES.glob("images/*/layout/blobs/sha256/*")):
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b" and len(data) < 1 << 14:
            with contextlib.suppress(EOFError, OSError, zlib.error):  # damaged ones teach nothing here
                yield gzip.decompress(data)


def _references() -> Mapping[str, bytes]:
    rows = json.loads((_FIXTURES / "references.json").read_text(encoding="utf-8"))
    return {str(number): row["input"].encode() for number, row in enumerate(rows)}


def _documents() -> Mapping[str, bytes]:
    found = _FIXTURES.glob("images/*/layout/blobs/sha256/*")
    return {path.name[:16]: path.read_bytes() for path in found if path.read_bytes()[:1] == b"{"}


def _packed() -> Mapping[str, bytes]:
    from backports import zstd  # noqa: PLC0415 - whoever looks for targets only needs none of it

    plain = tar([file("f", "text" * 100)])
    member = gzip.compress(plain, mtime=0)
    return {
        "gzip": b"\0" + member,
        "members": b"\0" + member + member + bytes(20),
        "zstd": b"\1" + zstd.compress(plain),
        "frames": b"\1" + zstd.compress(plain) * 2,
        "plain": b"\2" + plain,
    }


TARGETS = {
    "tar": Target(_tar, _tars),
    "reference": Target(_reference, _references),
    "manifest": Target(_manifest, _documents),
    "decode": Target(_decode, _packed),
}
