"""Paths inside a hostile root: never out of it, never blocked, never opened before they are judged."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.adapters.providers.oci.files import FileLimits, SandboxFiles
from sandbay.adapters.providers.oci.programs import find, interpreter_of
from sandbay.adapters.providers.oci.root import SandboxRoot, open_regular
from sandbay.adapters.providers.oci.starting import ensure_workdir
from sandbay.domain.command import User
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import FileKind

ME = User(0, 0)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("of the host")
    root = tmp_path / "root"
    for folder in ("etc", "bin", "workspace", "tmp"):
        (root / folder).mkdir(parents=True)
    return root


@pytest.fixture
def root(tree: Path) -> Iterator[SandboxRoot]:
    with SandboxRoot(tree, os.getuid()) as opened:
        yield opened


def _files(tree: Path, limits: FileLimits | None = None) -> SandboxFiles:
    return SandboxFiles(lambda: SandboxRoot(tree, os.getuid()), ME, limits or FileLimits())


def _refused(reason: Reason) -> pytest.RaisesExc[RefusedError]:
    return pytest.RaisesExc(RefusedError, check=lambda error: error.refusal.reason is reason)


@pytest.mark.parametrize("target", ["/secret", "../secret", "../../../../secret", "/../secret", "/proc/1/root/secret"])
def test_links_lead_nowhere_outside(tree: Path, root: SandboxRoot, target: str) -> None:
    (tree / "etc/passwd").symlink_to(target)
    assert root.read_small("/etc/passwd") == b""


def test_an_absolute_link_is_followed_inside(tree: Path, root: SandboxRoot) -> None:
    (tree / "tmp/real").write_text("inside")
    (tree / "etc/passwd").symlink_to("/tmp/real")
    assert root.read_small("/etc/passwd") == b"inside"


def test_small_reads_neither_block_nor_grow(tree: Path, root: SandboxRoot) -> None:
    os.mkfifo(tree / "etc/fifo")
    with (tree / "etc/huge").open("wb") as file:
        file.truncate(1 << 40)
    (tree / "etc/loop").symlink_to("loop")
    assert root.read_small("/etc/fifo") == b""
    assert len(root.read_small("/etc/huge", 1000)) == 1000
    assert [root.read_small(path) for path in ("/etc/loop", "/etc", "/etc/none")] == [b"", b"", b""]


def test_files_of_the_kernel_are_not_opened() -> None:
    with SandboxRoot(Path("/"), 0) as host, host.held("/proc/self/status") as handle, _refused(Reason.PATH_INVALID):
        open_regular(handle)


@pytest.mark.parametrize(
    "name, verdict",
    [
        ("good", None),
        ("/bin/good", None),
        ("bin/good", None),
        ("...x", None),
        ("script", None),
        ("nope", 127),
        ("/bin/nope", 127),
        ("/bin/good/below", 127),
        ("keep", 126),
        ("/etc", 126),
        ("orphan", 127),
        ("plain-interpreter", 126),
        ("again", 126),
        ("gone", 127),
    ],
)
def test_what_can_be_run(tree: Path, root: SandboxRoot, name: str, verdict: int | None) -> None:
    programs = {
        "good": (b"\x7fELF", 0o755),
        "...x": (b"\x7fELF", 0o755),
        "keep": (b"text", 0o644),
        "script": (b"#! /bin/good -x\n", 0o755),
        "orphan": (b"#!/bin/missing\n", 0o755),
        "plain-interpreter": (b"#!/bin/keep\n", 0o755),
        "again": (b"#!/bin/again\n", 0o755),
    }
    for program, (content, mode) in programs.items():
        (tree / "bin" / program).write_bytes(content)
        (tree / "bin" / program).chmod(mode)
    (tree / "bin/gone").symlink_to("/nowhere")
    assert find(root, name, search="/none:/bin", workdir="/", user=ME) == (verdict or "/bin/" + name.rpartition("/")[2])


@pytest.mark.parametrize(
    "mode, user, verdict",
    [
        (0o100, User(0, 0), None),
        (0o600, User(0, 0), 126),
        (0o700, User(5, 5), 126),
        (0o710, User(5, 0), None),
        (0o710, User(5, 5, (0,)), None),
        (0o701, User(5, 0), 126),
        (0o701, User(5, 5), None),
    ],
)
def test_who_may_execute(tree: Path, root: SandboxRoot, mode: int, user: User, verdict: int | None) -> None:
    (tree / "bin/x").write_bytes(b"\x7fELF")
    (tree / "bin/x").chmod(mode)
    assert find(root, "x", search="/bin", workdir="/", user=user) == (verdict or "/bin/x")


@pytest.mark.parametrize(
    "head, interpreter",
    [
        (b"#!/bin/sh\n", "/bin/sh"),
        (b"#!  /bin/env  python\nx", "/bin/env"),
        (b"#!\n/bin/sh", None),
        (b"\x7fELF", None),
        (b"", None),
    ],
)
def test_the_interpreter_of_a_first_line(head: bytes, interpreter: str | None) -> None:
    assert interpreter_of(head) == interpreter


def test_a_missing_working_directory_is_made(tree: Path, root: SandboxRoot) -> None:
    ensure_workdir(root, "/srv/very/deep")
    assert stat.S_IMODE((tree / "srv/very/deep").stat().st_mode) == 0o755
    ensure_workdir(root, "/srv/very/deep")


@pytest.mark.parametrize("path", ["/etc/file", "/etc/file/below", "/etc/dangling", "/etc/dangling/x", "/nul\0"])
def test_a_working_directory_that_cannot_be(tree: Path, root: SandboxRoot, path: str) -> None:
    (tree / "etc/file").touch()
    (tree / "etc/dangling").symlink_to("/none")
    with _refused(Reason.INVALID_WORKDIR):
        ensure_workdir(root, path)


def test_making_folders_stays_inside(tree: Path, root: SandboxRoot) -> None:
    (tree / "out").symlink_to("../../../..")
    ensure_workdir(root, "/out/made")
    assert (tree / "made").is_dir()
    assert sorted(path.name for path in tree.parent.iterdir()) == ["root", "secret"]


def test_write_replaces_in_one_step(tree: Path) -> None:
    files = _files(tree)
    files.write("a/b.txt", [b"one", b"two"])
    files.write("a/b.txt", [b"three"], mode=0o600)
    assert files.read("/workspace/a/b.txt").read() == b"three"
    entry = files.stat("a/b.txt")
    assert (entry.kind, entry.size, entry.mode, entry.name) == (FileKind.FILE, 5, 0o600, "b.txt")
    assert [each.name for each in files.list("a")] == ["b.txt"]


def test_a_failed_write_changes_nothing(tree: Path) -> None:
    files = _files(tree, FileLimits(file_bytes=4))
    files.write("x", [b"old"])
    with _refused(Reason.LIMIT_EXCEEDED):
        files.write("x", [b"123", b"45"])
    assert files.read("x").read() == b"old"
    assert [each.name for each in files.list(".")] == ["x"]


def test_a_write_through_a_link_replaces_the_link(tree: Path) -> None:
    (tree / "workspace/link").symlink_to("../etc/passwd")
    (tree / "etc/passwd").write_text("kept")
    files = _files(tree)
    assert files.stat("link").target == "../etc/passwd"
    files.write("link", [b"new"])
    assert ((tree / "etc/passwd").read_text(), files.stat("link").kind) == ("kept", FileKind.FILE)


def test_a_file_that_grows_past_the_bound_is_refused(tree: Path) -> None:
    (tree / "workspace/grows").write_bytes(b"123")
    reading = _files(tree, FileLimits(file_bytes=4)).read("grows")
    with (tree / "workspace/grows").open("ab") as file:
        file.write(b"456789")
    with reading, _refused(Reason.LIMIT_EXCEEDED):
        reading.read()


def test_only_regular_files_are_read(tree: Path) -> None:
    os.mkfifo(tree / "workspace/fifo")
    files = _files(tree)
    for path in ("fifo", "/etc"):
        with _refused(Reason.PATH_INVALID):
            files.read(path)
    assert files.stat("fifo").kind is FileKind.OTHER


@pytest.mark.parametrize(
    "path, reason",
    [
        ("none", Reason.PATH_NOT_FOUND),
        ("", Reason.PATH_INVALID),
        ("a\0b", Reason.PATH_INVALID),
        ("/etc/file/below", Reason.PATH_INVALID),
        ("x" * 300, Reason.PATH_INVALID),
        ("/etc/loop", Reason.PATH_INVALID),
    ],
)
def test_paths_that_cannot_be_read(tree: Path, path: str, reason: Reason) -> None:
    (tree / "etc/file").touch()
    (tree / "etc/loop").symlink_to("loop")
    with _refused(reason):
        _files(tree).read(path)


@pytest.mark.parametrize("path", ["/", ".", "..", "/etc/.."])
def test_the_root_itself_is_neither_removed_nor_written(tree: Path, path: str) -> None:
    files = _files(tree)
    for attempt in (files.remove, lambda at: files.write(at, [b""])):
        with _refused(Reason.PATH_INVALID):
            attempt(path)


def test_remove_takes_links_and_not_what_they_lead_to(tree: Path) -> None:
    (tree / "etc/kept").touch()
    (tree / "workspace/d/e").mkdir(parents=True)
    (tree / "workspace/d/e/link").symlink_to("/etc")
    files = _files(tree)
    files.remove("d")
    assert (tree / "etc/kept").exists()
    assert files.list(".") == []


def test_a_removal_has_a_depth(tree: Path) -> None:
    files = _files(tree, FileLimits(depth=3))
    files.make_folder("a/b/c/d/e")
    with _refused(Reason.LIMIT_EXCEEDED):
        files.remove("a")


def test_a_move_makes_the_targets_parents(tree: Path) -> None:
    files = _files(tree)
    files.write("one", [b"1"])
    files.move("one", "/tmp/x/two")
    assert files.read("/tmp/x/two").read() == b"1"
    with _refused(Reason.PATH_NOT_FOUND):
        files.stat("one")


def test_a_folder_has_a_bound_of_entries(tree: Path) -> None:
    files = _files(tree, FileLimits(entries=2))
    for name in "abc":
        (tree / "workspace" / name).touch()
    with _refused(Reason.LIMIT_EXCEEDED):
        files.list(".")
