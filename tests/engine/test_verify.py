"""A byte that changes in the store is found, whatever it belongs to; and what is whole is never called damaged."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Variant
from sandbay.engine.compare import first_difference
from tests.engine.store_support import AMD64, FIXTURES, Host, ignore, names
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file, folder, hardlink, symlink

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]

TREE = [
    folder("etc", mode=0o750, uid=3, gid=4),
    file("etc/keep", b"lower" * 1000, mode=0o4755),
    hardlink("etc/twin", "etc/keep"),
    file("etc/other", b"lower" * 1000, mode=0o4755),
    symlink("etc/link", "keep"),
    file("empty"),
]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def variant(host: Host, tmp_path: Path) -> Variant:
    layout = Layout(tmp_path / "layout")
    layout.image([TREE, [file("top", b"t")]], platform=AMD64)
    it = host.register(layout.path)
    host.store.prepare(it, ignore)
    return it


def verdict(host: Host, variant: Variant) -> Refusal | None:
    try:
        host.store.verify(variant.content_key, lambda _: None)
    except RefusedError as error:
        return error.refusal
    return None


def layers_of(refusal: Refusal) -> list[str]:
    layers = refusal.details["layers"]
    assert isinstance(layers, list)
    return [layer["diff_id"] for layer in layers]


def tree_of(host: Host, variant: Variant, level: int) -> Path:
    """Of layer `level`, the lowest first."""
    record = host.store.verified(variant.content_key)
    return record.layers_folder / record.lowers[::-1][level]


def flip(path: Path) -> None:
    """One bit, and nothing else that a look at the file would show."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    path.chmod(stat.S_IMODE(status.st_mode))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(path: Path) -> None:
    """The same file, but one of its own."""
    status = path.stat()
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    path.chmod(stat.S_IMODE(status.st_mode))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def linked_elsewhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("kept")


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "content": ("etc/keep", flip, "'etc/keep': its content changed"),
    "length": ("etc/keep", lambda it: os.truncate(it, 10), "'etc/keep': its size changed"),
    "mode": ("etc/keep", lambda it: it.chmod(0o755), "'etc/keep': its mode changed"),
    "owner": ("etc", lambda it: os.chown(it, 0, 0), "'etc': its owner changed"),
    "time": ("etc/keep", lambda it: os.utime(it, (1, 1)), "'etc/keep': its time changed"),
    "gone": ("empty", Path.unlink, "'empty': it is gone"),
    "more": ("", lambda it: (it / "more").touch(), "'more': it does not belong there"),
    "attribute": ("empty", lambda it: os.setxattr(it, "user.x", b"y"), "'empty': its attributes changed"),
    "link": ("etc/link", linked_elsewhere, "'etc/link': its "),
    "names of one file": ("etc/twin", replaced, "'etc/keep': its links changed"),
    "kind": ("empty", made_a_folder, "'empty': its kind changed"),
}


def keep_times(folder: Path, act: Callable[[], object]) -> None:
    """A damage that leaves no trace in the time of the folder."""
    status = folder.stat()
    act()
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_found_named_and_mended(how: str, host: Host, variant: Variant) -> None:
    name, act, says = DAMAGE[how]
    path = tree_of(host, variant, 0) / name
    keep_times(path if how == "more" else path.parent, lambda: act(path))
    refusal = verdict(host, variant)
    assert refusal is not None
    assert refusal.reason is Reason.CONTENT_LOST
    assert layers_of(refusal) == [variant.layers[0].diff_id]
    assert says in str(refusal.details["layers"])
    assert str(host.root) not in str(refusal)
    assert host.store.held() == ()


def test_what_was_damaged_is_made_anew(host: Host, variant: Variant) -> None:
    flip(tree_of(host, variant, 0) / "etc/keep")
    assert verdict(host, variant) is not None
    host.blobs.opened.clear()
    host.store.prepare(variant, ignore)
    assert variant.layers[1].digest not in host.blobs.opened, "what was whole stays"
    assert verdict(host, variant) is None
    assert host.content(variant, "etc/keep") == b"lower" * 1000


@pytest.mark.parametrize("kind", "abcde")
def test_no_awkward_image_that_is_whole_is_called_damaged(kind: str, host: Host) -> None:
    looked = 0
    for layout in sorted(FIXTURES.glob(f"{kind}*/layout")):
        try:
            variant = host.register(layout)
            host.store.prepare(variant, ignore)
        except RefusedError:
            continue  # others look at these
        assert verdict(host, variant) is None, layout
        looked += 1
    assert looked > 1
    assert names(host.root / "staging") == []


def test_what_is_not_here_is_absent_and_documents_are_looked_at(host: Host, variant: Variant) -> None:
    flip(host.root / "meta" / "sha256" / str(variant.digest).removeprefix("sha256:"))
    found = verdict(host, variant)
    assert found is not None
    assert found.reason is Reason.CONTENT_LOST
    host.store.prepare(variant, ignore)
    assert verdict(host, variant) is None
    host.store.remove(variant.content_key)
    absent = verdict(host, variant)
    assert absent is not None
    assert absent.reason is Reason.IMAGE_ABSENT_ON_NODE


@pytest.mark.parametrize("how", [flip, Path.unlink])
def test_without_its_blob_nothing_is_said_of_a_tree(
    how: Callable[[Path], object], host: Host, variant: Variant
) -> None:
    """Unknown is not damaged; what can be compared is, all the same."""
    lower, upper = variant.layers
    how(host.blob_path(lower.digest))
    refusal = verdict(host, variant)
    assert refusal is not None
    assert refusal.reason is (Reason.DIGEST_MISMATCH if how is flip else Reason.BLOB_MISSING)
    assert host.store.held() == (variant.content_key,)
    flip(tree_of(host, variant, 1) / "top")
    refusal = verdict(host, variant)
    assert refusal is not None
    assert layers_of(refusal) == [upper.diff_id]


def below(fd: int) -> list[str]:
    """Names in a folder, whatever it is called now."""
    return names(Path(f"/proc/self/fd/{fd}"))


def test_a_sandbox_keeps_its_damaged_tree_and_is_known_by_its_name(host: Host, variant: Variant) -> None:
    tree = tree_of(host, variant, 0)
    flip(tree / "etc/keep")
    inside = os.open(tree, os.O_RDONLY)
    try:
        assert verdict(host, variant) is not None
        host.store.sweep([tree.name])
        assert below(inside) == ["empty", "etc"]
        host.store.prepare(variant, ignore)
        assert tree_of(host, variant, 0) == tree
        host.store.sweep([tree.name])
        assert below(inside) == ["empty", "etc"]
        host.store.sweep()
        assert below(inside) == []
    finally:
        os.close(inside)
    assert verdict(host, variant) is None


def test_comparing_reads_to_the_end_and_follows_nothing(tmp_path: Path) -> None:
    for side in ("one", "two"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "large").write_bytes(bytes(3 << 20) + (b"x" if side == "one" else b"y"))
        (tmp_path / side / "out").symlink_to("/etc/passwd")
        os.mkfifo(tmp_path / side / "pipe")
        for each in ("large", "out", "pipe", ""):
            os.utime(tmp_path / side / each, (1, 1), follow_symlinks=False)
    assert first_difference(tmp_path / "one", tmp_path / "two") == "'large': its content changed"
    assert first_difference(tmp_path / "one", tmp_path / "one") is None
    assert first_difference(tmp_path / "none", tmp_path / "one") == "it cannot be read (No such file or directory)"
