"""Build contexts: what is in them, what is refused, and that unpacking writes nowhere else."""

import stat
from contextlib import closing
from pathlib import Path

import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.context import ArchiveContext
from sandbay.engine.limits import Limits
from tests.support.contexts import packed
from tests.support.tar_entries import Entry, file, folder, hardlink, symlink, tar


def opened(tmp_path: Path, data: bytes, limits: Limits | None = None) -> ArchiveContext:
    path = tmp_path / "context.tar"
    path.write_bytes(data)
    return ArchiveContext(path, limits)


def test_a_folder_is_told_and_unpacked_with_plain_owners_and_modes(tmp_path: Path) -> None:
    entries = [folder("a", 0o700), file("a/run", b"x", 0o4711), file("a/text", b"y", 0o600), symlink("l", "a/run")]
    target = tmp_path / "unpacked"
    target.mkdir()
    with closing(opened(tmp_path, tar(entries))) as context:
        told = [(it.path, it.kind, it.content[:12]) for it in context.files()]
        assert context.read("a/text", 10) == b"y"
        assert context.read("a", 10) is context.read("none", 10) is context.read("l", 10) is None
        context.unpack(target)
    assert told == [
        ("a", "folder", ""),
        ("a/run", "program", "sha256:2d711"),
        ("a/text", "file", "sha256:a1fce"),
        ("l", "link", "a/run"),
    ]
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in sorted(target.rglob("*"))}
    assert (modes["a"], modes["run"], modes["text"]) == (0o755, 0o755, 0o644)
    assert (target / "l").readlink() == Path("a/run")


def test_who_cloned_it_and_when_does_not_count(tmp_path: Path) -> None:
    def told(mode: int, mtime: int) -> list[object]:
        with closing(opened(tmp_path, tar([Entry(b"x", data=b"1", mode=mode, mtime=mtime, uid=mtime)]))) as context:
            return list(context.files())

    assert told(0o644, 1) == told(0o664, 2) == told(0o600, 3)
    assert told(0o644, 1) != told(0o744, 1)


STAY = [("l", "a"), ("a/l", "../b"), ("a/b/l", "../../c"), ("l", "./a/./b"), ("l", "none"), ("a/l", "..")]
LEAVE = [
    ("l", "/etc/passwd"),
    ("l", ".."),
    ("l", "../x"),
    ("a/l", "../../x"),
    ("l", "a/../../x"),
    ("l", "self/../x"),
    ("a/l", "../self/.."),
    ("a/b/l", ".././../../x"),
]
FOLDERS = [folder("a"), folder("a/b"), symlink("self", ".")]


@pytest.mark.parametrize("name, target", STAY)
def test_links_that_stay(tmp_path: Path, name: str, target: str) -> None:
    with closing(opened(tmp_path, tar([*FOLDERS, symlink(name, target)]))) as context:
        assert target in [it.content for it in context.files()]


@pytest.mark.parametrize("name, target", LEAVE)
def test_links_that_could_lead_out(tmp_path: Path, name: str, target: str) -> None:
    with pytest.raises(RefusedError) as caught:
        opened(tmp_path, tar([*FOLDERS, symlink(name, target)]))
    assert caught.value.refusal.reason is Reason.UNSAFE_LINK


@pytest.mark.parametrize(
    "entries",
    [
        [file("../x", b"")],
        [file("/etc/x", b"")],
        [file("a/x", b"")],
        [symlink("a", "b"), file("a/x", b"")],
        [file("x", b"1"), hardlink("y", "x")],
        [file("x", b"1"), file("./x", b"2")],
        [file("x", b"1"), file("x/y", b"2")],
        [Entry(b"pipe", kind=b"6")],
        [Entry(b"disk", kind=b"4", device=(8, 0))],
    ],
)
def test_what_is_no_folder_of_files(tmp_path: Path, entries: list[Entry]) -> None:
    with pytest.raises(RefusedError) as caught:
        opened(tmp_path, tar(entries))
    assert caught.value.refusal.reason is Reason.MALFORMED_ARCHIVE


def test_bounds(tmp_path: Path) -> None:
    data = packed({f"f{n}": "x" * 1000 for n in range(5)})
    opened(tmp_path, data, Limits(archive_members=5, unpacked_bytes=5000)).close()
    for limits in (Limits(archive_members=4), Limits(unpacked_bytes=4999)):
        with pytest.raises(RefusedError) as caught:
            opened(tmp_path, data, limits)
        assert caught.value.refusal.reason is Reason.LIMIT_EXCEEDED
