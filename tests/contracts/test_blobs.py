import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from tests.contracts.blobs_suite import DATA, BlobsSuite, digest_of, pieces, read

DIGEST = digest_of(DATA)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


class TestFolderBlobs(BlobsSuite):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> FolderBlobs:
        return FolderBlobs(tmp_path / "blobs")


def test_refused_bytes_leave_no_file(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    with pytest.raises(RefusedError):
        blobs.put(DIGEST, len(DATA), pieces(DATA[1:]))
    assert files(tmp_path) == []


def test_a_damaged_blob_is_replaced_by_putting_it_again(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    path = tmp_path / "sha256" / DIGEST.removeprefix("sha256:")
    path.write_bytes(b"y" + DATA[1:])
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    assert read(blobs, DIGEST) == DATA


def test_a_full_disk_is_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = FolderBlobs(tmp_path)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RefusedError) as caught:
        blobs.put(DIGEST, len(DATA), pieces(DATA))
    assert caught.value.refusal.reason is Reason.NO_SPACE
    assert files(tmp_path) == []


def test_everything_is_closed_to_others(tmp_path: Path) -> None:
    FolderBlobs(tmp_path / "blobs")
    assert [oct(path.stat().st_mode & 0o777) for path in (tmp_path / "blobs", *(tmp_path / "blobs").iterdir())] == [
        "0o700"
    ] * 3


WRITER = """
import os, signal, sys
from pathlib import Path
from sandbay.adapters.blobs.folder import FolderBlobs
def chunks():
    yield bytes(100_000)
    print("writing", flush=True)
    sys.stdin.read(1)
    os.kill(os.getpid(), signal.SIGKILL)
FolderBlobs(Path(sys.argv[1])).put("sha256:" + "0" * 64, 200_000, chunks())
"""


def test_what_a_killed_writer_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == b"writing\n"
        FolderBlobs(tmp_path)
        assert len(files(tmp_path)) == 1
        writer.communicate(b"x")
    assert writer.returncode == -9
    assert len(files(tmp_path)) == 1
    assert not FolderBlobs(tmp_path).has("sha256:" + "0" * 64)
    assert files(tmp_path) == []
