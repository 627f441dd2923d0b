import errno
import os
from pathlib import Path

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.durable import remove_tree, room, write_file


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for depth in range(1200):
        os.mkdir("d" * 20, dir_fd=here)
        os.close(os.open(f"file{depth}", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    remove_tree(top)
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    top = tmp_path / "top"
    (top / "inner").mkdir(parents=True)
    for link in (top / "link", top / "inner" / "link"):
        link.symlink_to(outside)
    os.mkfifo(top / "pipe")
    (top / os.fsdecode(b"\xff\xfe")).mkdir(mode=0)
    remove_tree(top)
    assert list(tmp_path.iterdir()) == [outside]
    assert (outside / "kept").is_dir()


def test_removing_what_is_not_there_or_no_folder(tmp_path: Path) -> None:
    remove_tree(tmp_path / "nothing")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    remove_tree(tmp_path / "file")
    remove_tree(tmp_path / "link")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "target"
    for text in (b"one", b"two"):
        write_file(target, text, tmp_path / "temporary")
        assert target.read_bytes() == text
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_has_its_reason(code: int) -> None:
    with pytest.raises(RefusedError) as caught, room():
        raise OSError(code, "full")
    assert caught.value.refusal.reason is Reason.NO_SPACE


def test_another_fault_stays_what_it_is() -> None:
    with pytest.raises(OSError, match="broken"), room():
        raise OSError(errno.EIO, "broken")
