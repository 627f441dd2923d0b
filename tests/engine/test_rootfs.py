"""Root file systems are assembled for real, and looked at from where a sandbox looks: its user namespace."""

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbay.engine import linux, rootfs
from sandbay.engine.unpack import Unpacked
from tests.support.tar_entries import Entry, device, file, folder, opaque, symlink, tar, whiteout
from tests.support.unpacking import Stack, look, needs_unpacking, tree_of, unpack

BUSYBOX = shutil.which("busybox")
BASE = 3_000_000

pytestmark = [
    needs_unpacking,
    pytest.mark.skipif(BUSYBOX is None, reason="no busybox on this machine"),
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    before = mounts_in(tmp_path)
    yield tmp_path
    assert mounts_in(tmp_path) == before == [], "a mount was left behind"


def mounts_in(folder_: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder_) in line]


def busybox(name: str = "bin/busybox", **more: Any) -> Entry:
    assert BUSYBOX is not None
    return file(name, Path(BUSYBOX).read_bytes(), mode=0o755, **more)


def stacked(place: Path, *layers: list[Entry]) -> Stack:
    stack = Stack(place)
    for layer in layers:
        assert stack.add(tar(layer)) is None
    return stack


def inside(root: Path, *command: str, uid: int = 0, program: str = "/bin/busybox") -> subprocess.CompletedProcess[str]:
    """Run busybox in the root file system, in a user namespace that maps its range."""
    namespace = rootfs._namespaces.of(rootfs._Range(BASE, 65536))
    enter = ["nsenter", f"--user=/proc/{os.getpid()}/fd/{namespace}", f"--root={root}", f"-S{uid}", "-G0"]
    return subprocess.run([*enter, program, *command], check=False, capture_output=True, text=True)


def said(root: Path, *command: str, uid: int = 0) -> str:
    done = inside(root, *command, uid=uid)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_owners_are_the_images_own_inside_and_a_range_of_its_own_outside(place: Path) -> None:
    stack = stacked(
        place, [busybox(), file("mine", uid=0), file("theirs", uid=1000, gid=1001), file("last", uid=65535)]
    )
    with stack.mounted(BASE) as root:
        assert said(root, "stat", "-c", "%u:%g", "/mine", "/theirs", "/last").split() == ["0:0", "1000:1001", "65535:0"]
        assert look(root / "theirs").owner == (BASE + 1000, BASE + 1001)
        assert inside(root, "chown", "7:7", "/theirs").returncode == 0
        assert said(root, "stat", "-c", "%u", "/theirs") == "7"
    assert look(stack.trees[0] / "theirs").owner == (1000, 1001)
    assert look(place / "upper" / "theirs").owner == (BASE + 7, BASE + 7)


def test_root_of_the_sandbox_is_nobody_outside_of_its_range(place: Path) -> None:
    stack = stacked(place, [busybox(), file("secret", "s", mode=0o600, uid=0)])
    with stack.mounted(BASE + 65536) as root:
        assert inside(root, "cat", "/secret").returncode != 0


@pytest.mark.parametrize("count", [1, 2, 127])
def test_as_many_layers_as_an_image_may_have(place: Path, count: int) -> None:
    (place / "l").mkdir()
    names = [f"{at:08x}" for at in range(count)]
    for name in names:
        (place / "l" / name).mkdir()
        (place / "l" / name / f"f{name}").write_text(name)
        (place / "l" / name / "which").write_text(name)
    root = assembled(place, names)
    assert sorted(path.name for path in root.iterdir()) == sorted([*(f"f{name}" for name in names), "which"])
    assert (root / "which").read_text() == names[0]
    rootfs.dismantle(place / "mounts")


def assembled(place: Path, names: list[str]) -> Path:
    folders = [place / name for name in ("mounts", "upper", "work")]
    for path in folders:
        path.mkdir(exist_ok=True)
    mounts, upper, work = folders
    return rootfs.assemble(place / "l", names, mounts=mounts, upper=upper, work=work, id_base=BASE)


def test_an_image_without_layers_has_an_empty_root(place: Path) -> None:
    (place / "l").mkdir()
    (place / "l" / "other").mkdir()
    root = assembled(place, [])
    assert list(root.iterdir()) == []
    (root / "new").write_text("n")
    assert (place / "upper" / "new").read_text() == "n"
    rootfs.dismantle(place / "mounts")


ROOTS = {
    "nobody says": ([[file("a")], [file("b")]], (0o755, 0)),
    "the lowest says": ([[folder(".", mode=0o555, uid=5)], [file("b")]], (0o555, 5)),
    "the topmost says": ([[folder(".", mode=0o555, uid=5)], [folder("./", mode=0o1777)], [file("c")]], (0o1777, 0)),
}


@pytest.mark.parametrize("name", ROOTS)
def test_the_root_is_what_the_topmost_layer_that_says_so_has(place: Path, name: str) -> None:
    layers, (mode, owner) = ROOTS[name]
    with stacked(place, *layers).mounted(BASE) as root:
        assert (look(root).mode, look(root).owner) == (mode, (BASE + owner, BASE))


def test_an_upper_in_use_keeps_its_root(place: Path) -> None:
    stack = stacked(place, [folder("."), busybox()])
    with stack.mounted(BASE) as root:
        assert inside(root, "chmod", "1777", "/").returncode == 0
        assert inside(root, "touch", "/kept").returncode == 0
    with stack.mounted(BASE) as root:
        assert look(root).mode == 0o1777
        assert (root / "kept").exists()


def file_capability(capability: int) -> bytes:
    return struct.pack("<IIIII", 0x02000001, 1 << capability, 0, 0, 0)


def test_file_capabilities_work_in_the_sandbox(place: Path) -> None:
    """They stay as the image has them (version 2): the id-mapped mount makes them the sandbox's root's."""
    override = {"security.capability": file_capability(linux.CAP_DAC_OVERRIDE)}
    layer = [busybox(), busybox("capable/busybox", xattrs=override), file("secret", "s", mode=0o600)]
    stack = stacked(place, layer)
    with stack.mounted(BASE) as root:
        assert inside(root, "cat", "/secret", uid=1000).returncode != 0
        assert inside(root, "cat", "/secret", uid=1000, program="/capable/busybox").stdout == "s"
    assert os.getxattr(stack.trees[0] / "capable/busybox", "security.capability") == override["security.capability"]


@pytest.mark.parametrize("node", [device("node", 1, 3, mode=0o666), device("node", 7, 0, kind=b"4", mode=0o666)])
def test_device_nodes_of_images_are_dead(place: Path, node: Entry) -> None:
    with stacked(place, [busybox(), node]).mounted(BASE) as root:
        assert inside(root, "head", "-c", "1", "/node").stderr.endswith("Permission denied\n")
        with pytest.raises(PermissionError):
            os.open(root / "node", os.O_RDONLY)


def test_layers_are_not_written(place: Path) -> None:
    stack = stacked(place, [busybox(), folder("d"), file("d/f", "old")], [whiteout("d/gone"), file("d/g")])
    before = [tree_of(tree, mtime=True) for tree in stack.trees]
    with stack.mounted(BASE) as root:
        assert (
            inside(root, "sh", "-c", "busybox rm /d/f; busybox mv /d/g /d/h; busybox touch /bin/busybox").returncode
            == 0
        )
        assert sorted(path.name for path in (root / "d").iterdir()) == ["h"]
    assert [tree_of(tree, mtime=True) for tree in stack.trees] == before


def test_dismantling_may_be_repeated_and_takes_what_is_half_made(place: Path) -> None:
    stack = stacked(place, [file("a")])
    mounts = place / "mounts"
    with stack.mounted(BASE) as root:
        assert len(mounts_in(place)) == 2
        linux.umount2(root)
        rootfs.dismantle(mounts)
        rootfs.dismantle(mounts)
        assert list(mounts.iterdir()) == []
        rootfs.dismantle(place / "never")


def test_dismantling_does_not_wait_for_who_stands_in_it(place: Path) -> None:
    with stacked(place, [file("a")]).mounted(BASE) as root, (root / "a").open("rb") as held:
        rootfs.dismantle(place / "mounts")
        assert mounts_in(place) == []
        assert held.read() == b""


def test_a_missing_layer_is_an_error_and_nothing_stays(place: Path) -> None:
    (place / "l" / "there").mkdir(parents=True)
    with pytest.raises(OSError, match="No such file"):
        assembled(place, ["there", "gone"])
    assert list((place / "mounts").iterdir()) == []


def test_fewer_layers_than_asked_for_are_noticed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "l").mkdir()
    for name in "abc":
        (place / "l" / name).mkdir()
    mount = linux.mount

    def forgetful(source: str, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
        mount(source, target, kind, flags, options.replace("a:b:c", "a:b"))

    monkeypatch.setattr(linux, "mount", forgetful)
    with pytest.raises(OSError, match="did not mount all 3 layers"):
        assembled(place, ["a", "b", "c"])
    assert list((place / "mounts").iterdir()) == []


def test_paths_that_the_options_cannot_hold(place: Path) -> None:
    odd = place / "a,b"
    odd.mkdir()
    (odd / "l").mkdir()
    with pytest.raises(ValueError, match="comma"):
        assembled(odd, [])


def test_the_working_directory_of_others_does_not_move(place: Path) -> None:
    here = Path.cwd()
    with stacked(place, [file("a")]).mounted(BASE):
        assert Path.cwd() == here


def test_a_fit_host_is_found_fit_and_left_clean(place: Path) -> None:
    assert rootfs.idmap_supported(place) is None
    assert list(place.iterdir()) == []


def test_why_a_host_is_unfit_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, **_: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(linux, "mount_setattr", refuse)
    assert rootfs.idmap_supported(place) == "an overlay over id-mapped layers cannot be mounted here: Invalid argument"
    assert list(place.iterdir()) == []


def test_the_upper_folder_is_a_plain_layer(place: Path) -> None:
    """No redirects, no metadata-only copies: what a sandbox did can be read without its lower layers' help."""
    stack = stacked(place, [busybox(), folder("d"), file("d/f", "text"), symlink("s", "d")], [folder("o"), opaque("o")])
    with stack.mounted(BASE) as root:
        assert inside(root, "chmod", "600", "/d/f").returncode == 0
        assert inside(root, "mv", "/d", "/e").returncode == 0
    assert (place / "upper" / "e" / "f").read_text() == "text"
    marks = {name for path in (place / "upper").rglob("*") for name in os.listxattr(path, follow_symlinks=False)}
    assert marks <= {"trusted.overlay.opaque", "trusted.overlay.origin", "trusted.overlay.impure"}


def test_one_tree_serves_many_ranges(place: Path) -> None:
    outcome = unpack(place / "tree", tar([file("f", uid=5)]))
    assert isinstance(outcome, Unpacked)
    owners = []
    (place / "l").mkdir()
    (place / "tree").rename(place / "l" / "t")
    for at in range(3):
        own = place / str(at)
        own.mkdir()
        (own / "l").symlink_to(place / "l")
        mounts, upper, work = (own / name for name in ("mounts", "upper", "work"))
        for path in (mounts, upper, work):
            path.mkdir()
        root = rootfs.assemble(place / "l", ["t"], mounts=mounts, upper=upper, work=work, id_base=BASE + at * 65536)
        owners.append(look(root / "f").owner[0])
    for at in range(3):
        rootfs.dismantle(place / str(at) / "mounts")
    assert owners == [BASE + 5, BASE + 65536 + 5, BASE + 2 * 65536 + 5]
