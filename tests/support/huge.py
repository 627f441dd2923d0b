"""A layer of any size, unpacked: `python -m tests.support.huge FOLDER COMPRESSION MIB` prints the peak memory of both.

Both are processes' peaks in KiB: of the one that reads, hashes and decodes, and of its child that writes.
"""

import functools
import gzip
import itertools
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from backports import zstd

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.domain.release import Layer
from sandbay.engine.layer_feed import unpack_layer
from sandbay.engine.limits import Limits
from sandbay.engine.media import LAYERS, Compression
from tests.support.oci_layout import digest_of
from tests.support.tar_entries import BLOCK, file

_MIB = 1 << 20
_TYPES = {compression: media_type for media_type, compression in reversed(LAYERS.items())}


def plain(mib: int) -> Iterator[bytes]:
    """A tar of one file of zeros, and a small one behind it."""
    yield file("zeros", raw={"size": b"\x80" + (mib * _MIB).to_bytes(11, "big")}).to_bytes()
    yield from itertools.repeat(bytes(_MIB), mib)
    yield file("last", b"x").to_bytes() + bytes(2 * BLOCK)


def packed(compression: Compression, mib: int) -> bytes:
    """The same as a blob; of gzip every MiB is a member of its own, as parallel packers write."""
    if compression is Compression.ZSTD:
        packer = zstd.ZstdCompressor()
        return b"".join(packer.compress(piece) for piece in plain(mib)) + packer.flush()
    member = functools.cache(lambda piece: gzip.compress(piece, 1, mtime=0))
    return b"".join(map(member, plain(mib)))


def main(folder: str, compression: str, mib: str) -> None:
    """Unpack it there, and tell what it took."""
    import hashlib  # noqa: PLC0415 - only here

    kind, size = Compression(compression), int(mib)
    blob, diff = packed(kind, size), hashlib.sha256()
    for piece in plain(size):
        diff.update(piece)
    blobs, into = FolderBlobs(Path(folder) / "blobs"), Path(folder) / "tree"
    blobs.put(digest_of(blob), len(blob), iter([blob]))
    layer = Layer(digest_of(blob), "sha256:" + diff.hexdigest(), len(blob), _TYPES[kind])
    into.mkdir()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unpacked = unpack_layer(blobs, layer, into, lowers=None, limits=Limits(), told=lambda _: None)
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    written = (into / "zeros").stat().st_size
    json.dump({"bytes": unpacked.bytes, "written": written, "grew": ours - before, "child": child}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
