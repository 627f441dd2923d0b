"""The wrappers add types and turn errno into exceptions, no more."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.engine import linux


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("f")
    (tmp_path / "d" / "out").symlink_to("/etc/hostname")
    (tmp_path / "outside").write_text("o")
    fd = os.open(tmp_path / "d", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_openat2_opens_what_is_beneath(opened: int) -> None:
    fd = linux.openat2(opened, "f", os.O_RDONLY, resolve=linux.RESOLVE_BENEATH)
    assert os.read(fd, 9) == b"f"
    assert not os.get_inheritable(fd)
    os.close(fd)


@pytest.mark.parametrize(
    "path, resolve, number",
    [
        ("../outside", linux.RESOLVE_BENEATH, errno.EXDEV),
        ("/etc/hostname", linux.RESOLVE_BENEATH, errno.EXDEV),
        ("out", linux.RESOLVE_BENEATH, errno.EXDEV),
        ("out", linux.RESOLVE_NO_SYMLINKS, errno.ELOOP),
        ("out", linux.RESOLVE_IN_ROOT, errno.ENOENT),
        ("gone", 0, errno.ENOENT),
    ],
)
def test_openat2_refuses_with_the_kernels_errno(opened: int, path: str, resolve: int, number: int) -> None:
    with pytest.raises(OSError, match=path) as refused:
        linux.openat2(opened, path, os.O_RDONLY, resolve=resolve)
    assert refused.value.errno == number


def test_errors_carry_errno_and_path(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as refused:
        linux.open_tree(linux.AT_FDCWD, missing, 0)
    assert refused.value.filename == str(missing)
    with pytest.raises(OSError, match="Bad file descriptor"):
        linux.syncfs(-1)


def test_mount_options_that_the_kernel_would_cut_are_not_tried(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        linux.mount("overlay", tmp_path, "overlay", 0, "lowerdir=" + "x" * 4096)


def test_the_kind_of_a_file_system(tmp_path: Path) -> None:
    proc = os.open("/proc", os.O_RDONLY)
    assert linux.file_system_magic(proc) == 0x9FA0
    os.close(proc)


def test_a_thread_may_have_a_working_directory_of_its_own(tmp_path: Path) -> None:
    here, there = Path.cwd(), []

    def move() -> None:
        linux.unshare(linux.CLONE_FS)
        os.chdir(tmp_path)
        there.append(Path.cwd())

    thread = threading.Thread(target=move)
    thread.start()
    thread.join()
    assert (there, Path.cwd()) == ([tmp_path], here)
