"""The helper that makes images for other tests, judged by GNU tar and umoci."""

import pathlib
import shutil
import subprocess

import pytest

from tests.support.oci_layout import BUSYBOX, Compression, Layout, busybox_layers
from tests.support.tar_entries import Entry, file, folder, hardlink, opaque, symlink, tar, whiteout

needs_umoci = pytest.mark.skipif(shutil.which("umoci") is None, reason="umoci is not installed")


def listed_by_gnu_tar(archive: bytes) -> list[str]:
    command = ["tar", "--list", "--verbose", "--numeric-owner", "--utc", "--file=-"]
    return subprocess.run(command, input=archive, capture_output=True, check=True).stdout.decode().splitlines()


@pytest.mark.parametrize(
    "entry, line",
    [
        (folder("d", 0o1777), "drwxrwxrwt 0/0               0 2023-06-10 00:00 d/"),
        (file("f", "abc", 0o4755, uid=7, gid=8), "-rwsr-xr-x 7/8               3 2023-06-10 00:00 f"),
        (symlink("s", "../x"), "lrwxrwxrwx 0/0               0 2023-06-10 00:00 s -> ../x"),
        (hardlink("h", "f"), "hrw-r--r-- 0/0               0 2023-06-10 00:00 h link to f"),
        (file("f", uid=3_000_000), "-rw-r--r-- 3000000/0         0 2023-06-10 00:00 f"),
        (file("l" * 300), "-rw-r--r-- 0/0               0 2023-06-10 00:00 " + "l" * 300),
        (whiteout("a/b"), "---------- 0/0               0 2023-06-10 00:00 a/.wh.b"),
        (opaque("a"), "---------- 0/0               0 2023-06-10 00:00 a/.wh..wh..opq"),
        (file("x", pax={"path": b"from-pax"}), "-rw-r--r-- 0/0               0 2023-06-10 00:00 from-pax"),
    ],
)
def test_an_entry_is_what_gnu_tar_reads(entry: Entry, line: str) -> None:
    assert listed_by_gnu_tar(tar([entry])) == [line]


def test_a_raw_field_stands_in_the_header_as_given() -> None:
    header = file("x", raw={"size": b"\xff" * 12}).to_bytes()
    assert header[124:136] == b"\xff" * 12
    assert int(header[148:154], 8) == sum(header[:148]) + 8 * ord(" ") + sum(header[156:])


@pytest.mark.real
@needs_umoci
def test_umoci_unpacks_a_layout_of_ours(tmp_path: pathlib.Path) -> None:
    layout = Layout(tmp_path / "layout")
    lower = [folder("etc"), file("etc/old", "1"), file("etc/kept", "2", xattrs={"user.x": b"y"})]
    image = layout.image([lower, [whiteout("etc/old"), file("etc/new", "3")]], ref="it")
    unpack = ["umoci", "unpack", "--image", f"{layout.path}:it", str(tmp_path / "bundle")]
    subprocess.run(unpack, check=True, capture_output=True)
    etc = tmp_path / "bundle" / "rootfs" / "etc"
    assert {path.name: path.read_text() for path in etc.iterdir()} == {"kept": "2", "new": "3"}
    assert layout.blob_path(image.manifest_digest).is_file()


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_the_diff_id_does_not_depend_on_the_compression(tmp_path: pathlib.Path, compression: Compression) -> None:
    layout = Layout(tmp_path / "layout")
    packed = layout.layer([file("etc/x", "1")], compression)
    plain = layout.layer([file("etc/x", "1")], "plain")
    assert packed.digest != plain.digest == plain.diff_id == packed.diff_id


@pytest.mark.skipif(not BUSYBOX.exists(), reason="busybox-static is not installed")
def test_the_busybox_system_runs_a_shell(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    archive = tar(busybox_layers()[0])
    subprocess.run(["tar", "--extract", f"--directory={root}"], input=archive, check=True)
    shell = [str(root / "bin" / "busybox"), "sh", "-c", "echo $((6 * 7))"]
    assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == "42\n"
    assert (root / "bin" / "sh").readlink() == pathlib.Path("busybox")
