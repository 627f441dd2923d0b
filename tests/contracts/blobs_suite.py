"""The contract of the port `blobs`, executable: subclass it and give the fixture `blobs`."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.blobs import Blobs

DATA = bytes(range(256)) * 5000


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def pieces(data: bytes, length: int = 4096) -> Iterator[bytes]:
    return (data[at : at + length] for at in range(0, len(data), length))


def read(blobs: Blobs, digest: str) -> bytes:
    with blobs.open(digest) as file:
        return file.read()


def refusal(blobs: Blobs, digest: str, size: int, data: bytes) -> Reason:
    with pytest.raises(RefusedError) as caught:
        blobs.put(digest, size, pieces(data))
    return caught.value.refusal.reason


class BlobsSuite:
    @pytest.mark.parametrize("data", [b"", b"x", DATA])
    def test_what_was_put_is_there(self, blobs: Blobs, data: bytes) -> None:
        digest = digest_of(data)
        assert not blobs.has(digest)
        blobs.put(digest, len(data), pieces(data))
        assert blobs.has(digest)
        assert blobs.size(digest) == len(data)
        assert read(blobs, digest) == data

    def test_putting_again_is_harmless(self, blobs: Blobs) -> None:
        for _ in range(2):
            blobs.put(digest_of(DATA), len(DATA), pieces(DATA))
        assert read(blobs, digest_of(DATA)) == DATA

    @pytest.mark.parametrize(
        "data, reason",
        [
            (DATA[:-1], Reason.SIZE_MISMATCH),
            (DATA + b"x", Reason.SIZE_MISMATCH),
            (b"", Reason.SIZE_MISMATCH),
            (b"x" + DATA[1:], Reason.DIGEST_MISMATCH),
        ],
    )
    @pytest.mark.parametrize("warm", [False, True])
    def test_wrong_bytes_are_refused_and_never_visible(
        self, blobs: Blobs, data: bytes, reason: Reason, *, warm: bool
    ) -> None:
        if warm:
            blobs.put(digest_of(DATA), len(DATA), pieces(DATA))
        assert refusal(blobs, digest_of(DATA), len(DATA), data) is reason
        assert blobs.has(digest_of(DATA)) is warm
        assert not warm or read(blobs, digest_of(DATA)) == DATA

    def test_what_is_larger_is_not_read_to_its_end(self, blobs: Blobs) -> None:
        taken = 0

        def endless() -> Iterator[bytes]:
            nonlocal taken
            while True:
                taken += 1
                yield bytes(1024)

        with pytest.raises(RefusedError) as caught:
            blobs.put(digest_of(b""), 10_000, endless())
        assert caught.value.refusal.reason is Reason.SIZE_MISMATCH
        assert taken == 10

    def test_a_source_that_breaks_leaves_nothing(self, blobs: Blobs) -> None:
        def breaking() -> Iterator[bytes]:
            yield DATA[:100]
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            blobs.put(digest_of(DATA), len(DATA), breaking())
        assert not blobs.has(digest_of(DATA))

    def test_a_missing_blob_says_so(self, blobs: Blobs) -> None:
        for ask in (blobs.open, blobs.size):
            with pytest.raises(RefusedError) as caught:
                ask(digest_of(b"nowhere"))
            assert caught.value.refusal.reason is Reason.BLOB_MISSING

    @pytest.mark.parametrize("digest", ["../../etc/passwd", "sha256:../../x", "sha256:" + "A" * 64, "", "sha256:"])
    def test_only_digests_are_names(self, blobs: Blobs, digest: str) -> None:
        for ask in (blobs.has, blobs.open, blobs.size):
            with pytest.raises(RefusedError) as caught:
                ask(digest)
            assert caught.value.refusal.reason is Reason.INVALID_DIGEST
        assert refusal(blobs, digest, 1, b"x") is Reason.INVALID_DIGEST

    def test_one_blob_put_by_many_at_once(self, blobs: Blobs) -> None:
        digest = digest_of(DATA)
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(blobs.put, digest, len(DATA), pieces(DATA)) for _ in range(8)]:
                done.result()
        assert read(blobs, digest) == DATA
