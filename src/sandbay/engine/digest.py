"""Digests: read strictly, before one is compared, stored or made part of a file name."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.blobs import Blobs

CHUNK = 1 << 20
"""Bytes read at a time."""

_GRAMMAR = re.compile(r"([a-z0-9]+(?:[+._-][a-z0-9]+)*):[a-zA-Z0-9=_-]+")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_SHOWN = 140
_TRIES = 3

T = TypeVar("T")

WRONG_BYTES = frozenset({Reason.DIGEST_MISMATCH, Reason.SIZE_MISMATCH})
"""What is said of bytes that are not the ones that were asked for."""


def parse_digest(text: str) -> str:
    """Return the text when it is `sha256:` and 64 lower-case hex digits.

    Refuses with `invalid_digest`, or with `unsupported_digest` when it is well-formed and of another algorithm.
    """
    if _SHA256.fullmatch(text):
        return text
    match = _GRAMMAR.fullmatch(text)
    if match and match[1] != "sha256":
        raise RefusedError(
            Reason.UNSUPPORTED_DIGEST,
            f"digests by {match[1]} are not supported, only by sha256",
            details={"algorithm": match[1]},
        )
    raise RefusedError(
        Reason.INVALID_DIGEST,
        "a digest is sha256: and 64 lower-case hex digits",
        details={"digest": text[:_SHOWN]},
    )


def hex_of(digest: str) -> str:
    """The 64 hex digits: safe as a file name, since the digest is checked here once more."""
    return parse_digest(digest).removeprefix("sha256:")


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, `CHUNK` bytes at a time."""
    while chunk := file.read(CHUNK):
        yield chunk


class Tally:
    """Counts and hashes bytes as they pass, then says whether they are the ones that were asked for."""

    def __init__(self, digest: str, size: int) -> None:
        """Expect `size` bytes with this digest."""
        self._digest, self._size = parse_digest(digest), size
        self._hash = hashlib.sha256()
        self.seen = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes. Refuses with `size_mismatch` as soon as there are too many."""
        self.seen += len(chunk)
        if self.seen > self._size:
            raise self._wrong_size("more than")
        self._hash.update(chunk)

    def check(self) -> None:
        """All bytes were added. Refuses with `size_mismatch` or `digest_mismatch`."""
        if self.seen != self._size:
            raise self._wrong_size(f"{self.seen} of")
        found = "sha256:" + self._hash.hexdigest()
        if found != self._digest:
            raise RefusedError(
                Reason.DIGEST_MISMATCH,
                f"the bytes of {self._digest} are those of {found}",
                details={"digest": self._digest, "found": found},
            )

    def _wrong_size(self, found: str) -> RefusedError:
        return wrong_size(self._digest, self._size, self.seen, found)


def wrong_size(digest: str, size: int, seen: int, found: str | None = None) -> RefusedError:
    """The refusal for a blob that is not as long as its descriptor says."""
    return RefusedError(
        Reason.SIZE_MISMATCH,
        f"{digest} has {seen if found is None else found} {'instead of ' if found is None else ''}{size} bytes",
        details={"digest": digest, "size": size, "found": seen},
    )


def verified(chunks: Iterable[bytes], digest: str, size: int) -> Iterator[bytes]:
    """Pass chunks on and refuse by `size_mismatch` or `digest_mismatch`, at the end at the latest.

    What was passed on counts for nothing until the iteration has ended by itself.
    """
    tally = Tally(digest, size)
    for chunk in chunks:
        tally.add(chunk)
        yield chunk
    tally.check()


def read_anew(blobs: Blobs, digest: str, act: Callable[[], T]) -> T:
    """Do what reads a blob and judges its bytes; again where wrong ones may come from a transfer that was resumed.

    What came in one piece is what the store has, and is judged at once. Also refuses with `registry_unreachable`.
    """
    for _ in range(_TRIES):
        try:
            return act()
        except RefusedError as error:
            if error.refusal.reason not in WRONG_BYTES or not blobs.pieced(digest):
                raise
    message = f"the transfer of {digest} keeps being cut, and what is resumed does not fit together"
    raise RefusedError(Reason.REGISTRY_UNREACHABLE, message, details={"digest": digest})


def read_verified(file: BinaryIO, digest: str, size: int) -> bytes:
    """All bytes of a small blob, verified. Reads at most one chunk more than `size`."""
    return b"".join(verified(chunks_of(file), digest, size))
