"""One layer in the confined child: what is refused, what is kept, and what the child may do."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.domain.errors import Refusal
from sandbay.engine import linux, metadata
from sandbay.engine.limits import Limits
from sandbay.engine.unpack import Unpacked, Unpacker, UnpackFaultError
from sandbay.engine.unpack_child import verdict
from tests.support.canary import PATH as CANARY
from tests.support.canary import canary
from tests.support.tar_entries import Entry, device, file, folder, hardlink, opaque, symlink, tar, whiteout
from tests.support.unpacking import Stack, look, needs_unpacking, tree_of, unpack

pytestmark = needs_unpacking

UP = "../" * 12
CLIMB = f"{UP}tmp/rfx-canary"


def unpacked(into: Path, *entries: Entry, limits: Limits | None = None) -> Unpacked:
    outcome = unpack(into, tar(entries), None, limits)
    assert isinstance(outcome, Unpacked), outcome
    return outcome


def refused(into: Path, *entries: Entry, limits: Limits | None = None) -> Refusal:
    outcome = unpack(into, tar(entries), None, limits)
    assert isinstance(outcome, Refusal), outcome
    return outcome


UNSAFE = {
    "file above": ([file(f"{CLIMB}/new", "x")], "unsafe_layer_path"),
    "folder above": ([folder(f"{CLIMB}/new")], "unsafe_layer_path"),
    "link above": ([symlink(f"{CLIMB}/new", "x")], "unsafe_layer_path"),
    "device above": ([device(f"{CLIMB}/new", 1, 3)], "unsafe_layer_path"),
    "whiteout above": ([whiteout(f"{CLIMB}/victim")], "unsafe_layer_path"),
    "hard link above": ([hardlink(f"{CLIMB}/new", "x")], "unsafe_layer_path"),
    "up in the middle": ([file("a/../b", "x")], "unsafe_layer_path"),
    "up in a long name": ([file("a/" * 60 + "../b", "x")], "unsafe_layer_path"),
    "up in a pax name": ([file("a", "x", pax={"path": b"../a"})], "unsafe_layer_path"),
    "only up": ([folder("..")], "unsafe_layer_path"),
    "NUL in a name": ([file("a", pax={"path": b"a\0b"})], "unsafe_layer_path"),
    "no name": ([file("")], "unsafe_layer_path"),
    "root as a file": ([file(".", "x")], "unsafe_layer_path"),
    "root as a link": ([symlink("./", str(CANARY))], "unsafe_layer_path"),
    "root as a hard link": ([file("a"), hardlink("/", "a")], "unsafe_layer_path"),
    "a loop of links": ([symlink("a", "b"), symlink("b", "a"), file("a/x")], "unsafe_layer_path"),
    "hard link out": ([hardlink("a", f"{CLIMB}/victim")], "unsafe_link"),
    "hard link up and back": ([file("a"), hardlink("b", "x/../a")], "unsafe_link"),
    "hard link to the root": ([hardlink("b", "/")], "unsafe_link"),
    "hard link to a folder": ([folder("a"), hardlink("b", "a")], "unsafe_link"),
    "hard link to NUL": ([file("a"), hardlink("b", "x", pax={"linkpath": b"a\0b"})], "unsafe_link"),
    "whiteout of nothing named": ([file("a/.wh.")], "unsafe_whiteout"),
    "whiteout of the folder itself": ([file("a/.wh..")], "unsafe_whiteout"),
    "whiteout of the parent": ([file("a/.wh...")], "unsafe_whiteout"),
    "whiteout of a whiteout": ([file("a/.wh..wh.x")], "unsafe_whiteout"),
    "a folder named as a whiteout": ([file("a/.wh.x/y")], "unsafe_whiteout"),
    "a whiteout through a link": ([symlink("s", ".wh.x"), file("s/y")], "unsafe_whiteout"),
    "overlayfs's own whiteout": ([device("a", 0, 0)], "unsafe_device"),
    "file twice": ([file("a"), file("./a")], "malformed_layer"),
    "folder twice": ([folder("a"), folder("a/")], "malformed_layer"),
    "root twice": ([folder("."), folder("./")], "malformed_layer"),
    "file, then folder": ([file("a"), folder("a")], "malformed_layer"),
    "folder, then link": ([folder("a"), symlink("a", "b")], "malformed_layer"),
    "link, then link": ([symlink("a", "b"), symlink("a", "c")], "malformed_layer"),
    "device twice": ([device("a", 1, 3), device("a", 1, 3)], "malformed_layer"),
    "hard link over a file": ([file("a"), file("b"), hardlink("b", "a")], "malformed_layer"),
    "hard link to itself": ([file("a"), hardlink("a", "a")], "malformed_layer"),
    "file over an implied folder": ([file("a/b"), file("a")], "malformed_layer"),
    "something below a file": ([file("a"), file("a/b")], "malformed_layer"),
    "long part": ([file("n" * 256)], "malformed_layer"),
    "long path": ([file("n/" * 2048 + "x")], "malformed_layer"),
    "long through links": (
        [
            folder("/".join(["n" * 200] * 15)),
            symlink("s", "/".join(["n" * 200] * 15)),
            file("s/" + ("m" * 200 + "/") * 6 + "x"),
        ],
        "malformed_layer",
    ),
    "link to nothing named": ([symlink("a", "")], "malformed_layer"),
    "device out of range": ([device("a", 4096, 0)], "malformed_layer"),
    "capability of no known form": ([file("a", xattrs={"security.capability": b"x"})], "malformed_layer"),
    "owner out of range": ([file("a", uid=65536)], "limit_exceeded"),
    "group out of range": ([folder("a", gid=2**32 + 1)], "limit_exceeded"),
    "owner of the root": ([folder(".", uid=70000)], "limit_exceeded"),
    "owner of a link": ([symlink("a", "b", uid=100000)], "limit_exceeded"),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_layers_are_refused_by_name(name: str, tmp_path: Path) -> None:
    entries, reason = UNSAFE[name]
    with canary():
        refusal = refused(tmp_path / "t", file("etc/before", "b"), *entries, file("zz", "after"))
    assert refusal.reason == reason, refusal
    assert str(tmp_path) not in refusal.message


CONTAINED = {
    "a file through a link to the host": [symlink("s", str(CANARY)), file("s/victim", "x")],
    "a link that climbs": [symlink("d/s", f"{CLIMB}"), file("d/s/victim", "x")],
    "a whiteout through a link": [symlink("s", str(CANARY)), whiteout("s/victim")],
    "an opaque folder through a link": [symlink("s", str(CANARY)), opaque("s")],
    "a folder entry in place of nothing, through a link": [
        symlink("s", "/tmp"),
        folder("s/rfx-canary", mode=0o777, uid=9),
    ],
    "a hard link through a link": [
        symlink("s", str(CANARY)),
        file("tmp/rfx-canary/victim", "v"),
        hardlink("h", "s/victim"),
    ],
}


@pytest.mark.parametrize("name", CONTAINED)
def test_links_to_the_host_lead_into_the_image(name: str, tmp_path: Path) -> None:
    with canary():
        unpacked(tmp_path / "t", *CONTAINED[name])
    assert (tmp_path / "t" / "tmp" / "rfx-canary").is_dir()


@pytest.mark.parametrize(
    "entries",
    [
        [symlink("sbin/init", "../bin/busybox"), file("bin/busybox")],
        [folder("/abs"), file("./dot"), file("a//b")],
        [symlink("lib", "usr/lib"), file("lib/x"), folder("usr/lib")],
        [file("..a/...", "x"), file("b..", "y")],
        [file(bytes(range(1, 47)) + bytes(range(48, 256)), "any bytes")],
        [file("n" * 255), folder("d/" * 256)],
        [symlink("s", "t"), hardlink("h", "s")],
    ],
)
def test_honest_layers_pass(entries: list[Entry], tmp_path: Path) -> None:
    unpacked(tmp_path / "t", *entries)


def test_everything_of_an_entry_is_kept(tmp_path: Path) -> None:
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    root = tmp_path / "t"
    unpacked(
        root,
        folder(".", mode=0o700, uid=3, mtime=11),
        folder("d", mode=0o3770, uid=1, gid=2, mtime=12),
        file("d/f", "text", mode=0o6755, uid=4, gid=5, pax={"mtime": b"13.5"}),
        file("d/cap", uid=6, xattrs={"security.capability": capability, "user.note": b"n"}),
        symlink("d/s", "nowhere", uid=7, gid=8, mtime=14),
        device("d/c", 1, 3, mode=0o666, uid=9, mtime=15),
        Entry(b"d/p", kind=b"6", mode=0o620, gid=5, mtime=16),
        hardlink("d/h", "d/f"),
    )
    found = tree_of(root, mtime=True)
    assert (look(root).mode, look(root).owner, root.stat().st_mtime) == (0o700, (3, 0), 11)
    assert (found["d"].mode, found["d"].owner, found["d"].mtime) == (0o3770, (1, 2), 12_000_000_000)
    assert (found["d/f"].mode, found["d/f"].owner, found["d/f"].mtime) == (0o6755, (4, 5), 13_500_000_000)
    assert os.getxattr(root / "d/cap", "security.capability") == capability
    assert os.getxattr(root / "d/cap", "user.note") == b"n"
    assert (found["d/s"].content, found["d/s"].owner, found["d/s"].mtime) == (b"nowhere", (7, 8), 14_000_000_000)
    assert (found["d/c"].kind, found["d/c"].mode, found["d/c"].owner) == ("char", 0o666, (9, 0))
    assert (root / "d/c").stat().st_rdev == os.makedev(1, 3)
    assert (found["d/p"].kind, found["d/p"].mode) == ("fifo", 0o620)
    assert (root / "d/h").samefile(root / "d/f")


def test_an_image_does_not_steer_the_host(tmp_path: Path) -> None:
    marks = ["opaque", "redirect", "metacopy", "whiteout", "origin", "impure", "overlay.opaque"]
    dropped = [f"{space}.overlay.{mark}" for space in ("trusted", "user") for mark in marks]
    dropped += ["trusted.x", "trusted.sandbay.implied", "security.ima", "security.selinux", "system.posix_acl_access"]
    unpacked(
        tmp_path / "t", folder("d", xattrs=dict.fromkeys(dropped, b"y")), file("f", xattrs=dict.fromkeys(dropped, b"y"))
    )
    assert os.listxattr(tmp_path / "t" / "d") == os.listxattr(tmp_path / "t" / "f") == []


def test_one_layer_always_gives_one_tree(tmp_path: Path) -> None:
    entries = [file("a/b/c", "1"), folder("a/d", mtime=5), file("a/d/e", "2"), symlink("s", "a"), file("s/f", "3")]
    unpacked(tmp_path / "1", *entries)
    time.sleep(0.02)
    unpacked(tmp_path / "2", *entries)
    first, second = (tree_of(tmp_path / name, mtime=True) for name in ("1", "2"))
    assert first == second
    assert (first["a"].mtime, first["a/d"].mtime) == (0, 5_000_000_000)
    assert (tmp_path / "1").stat().st_mtime == 0


def test_folders_keep_their_time_however_entries_are_ordered(tmp_path: Path) -> None:
    folders = [folder(f"d{at:03}", mtime=at) for at in range(400)]
    files = [file(f"d{at:03}/{name}", "x") for name in "ab" for at in range(400)]
    unpacked(tmp_path / "t", *folders, *files)
    assert [int((tmp_path / "t" / f"d{at:03}").stat().st_mtime) for at in range(400)] == list(range(400))


def test_what_depends_on_lower_layers_is_told(tmp_path: Path) -> None:
    outcome = unpacked(
        tmp_path / "t",
        file("implied/too/f"),
        folder("named"),
        file("named/f"),
        file("later/f"),
        folder("later"),
        hardlink("b", "/lower/file"),
        whiteout("w/gone"),
        whiteout("cut"),
        file("cut/off/f"),
        file("opaque/in/f"),
        opaque("opaque"),
        file("caf\udce9/f".encode("utf-8", "surrogateescape")),
    )
    assert outcome.implied == ("caf\udce9", "implied", "implied/too", "opaque", "w")
    assert outcome.late == (("b", "/lower/file"),)
    assert outcome.whiteouts == ("", "w")


LAYER = [
    folder("d", mode=0o750),
    file("d/f", "1"),
    folder("d/sub"),
    file("d/sub/x", "2"),
    whiteout("d"),
    whiteout("d/gone"),
    whiteout("new"),
    file("new/x", "3"),
    file("n/deep/y", "4"),
    opaque("n"),
    whiteout("n/z"),
    whiteout("only"),
    symlink("s", "d"),
]


def test_the_order_of_entries_does_not_matter(tmp_path: Path) -> None:
    """Marks act on lower layers only, wherever they stand."""
    generator = random.Random(7)  # noqa: S311 - the same orders every time
    trees = []
    for at in range(12):
        entries = generator.sample(LAYER, len(LAYER)) if at else LAYER
        outcome = unpacked(tmp_path / str(at), *entries)
        opaque_folders = [
            path.name
            for path in (tmp_path / str(at)).rglob("*")
            if path.is_dir() and not path.is_symlink() and "trusted.overlay.opaque" in os.listxattr(path)
        ]
        trees.append((tree_of(tmp_path / str(at)), sorted(opaque_folders), outcome.implied, outcome.whiteouts))
    assert all(tree == trees[0] for tree in trees)
    assert trees[0][1] == ["d", "n", "new"]


@pytest.mark.parametrize(
    "limits, entries, limit",
    [
        (Limits(entries=4), [file("a/b/c"), file("d")], None),
        (Limits(entries=3), [file("a/b/c"), file("d")], "entries"),
        (Limits(unpacked_bytes=10), [file("a", "x" * 6), file("b", "x" * 4)], None),
        (Limits(unpacked_bytes=9), [file("a", "x" * 6), file("b", "x" * 4)], "unpacked_bytes"),
        (Limits(lower_references=1), [file("a/x")], None),
        (Limits(lower_references=1), [file("a/b/x")], "lower_references"),
        (Limits(lower_references=1), [hardlink("a", "x"), hardlink("b", "x")], "lower_references"),
        (Limits(lower_references=1), [folder("a"), folder("b"), whiteout("a/x"), whiteout("b/x")], "lower_references"),
        (Limits(lower_reference_bytes=7), [file("aa/bb/x")], "lower_reference_bytes"),
        (Limits(), [folder("d/" * 257)], "path_depth"),
        (Limits(path_depth=2), [folder("a/b"), symlink("s", "a/b"), folder("s/c")], "path_depth"),
        (Limits(id_range=1000), [file("a", uid=999)], None),
        (Limits(id_range=1000), [file("a", gid=1000)], "id_range"),
        (Limits(), [file("a", xattrs={"user.x": b"x" * 4000})], "attribute_bytes"),
        (Limits(header_bytes=512), [file("a", xattrs={"user.x": b"x" * 1000})], "header_bytes"),
    ],
)
def test_limits_name_what_was_met(limits: Limits, entries: list[Entry], limit: str | None, tmp_path: Path) -> None:
    outcome = unpack(tmp_path / "t", tar(entries), None, limits)
    if limit is None:
        assert isinstance(outcome, Unpacked)
        return
    assert isinstance(outcome, Refusal)
    assert (outcome.reason, outcome.details["limit"]) == ("limit_exceeded", limit)


def test_a_sparse_file_counts_with_its_holes(tmp_path: Path) -> None:
    records = {"GNU.sparse.map": b"0,3", "GNU.sparse.size": b"1000000", "GNU.sparse.name": b"real"}
    entry = file("s", "abc", pax=records)
    assert unpacked(tmp_path / "a", entry).bytes == 1_000_000
    content = (tmp_path / "a" / "real").read_bytes()
    assert (len(content), content[:4]) == (1_000_000, b"abc\0")
    assert refused(tmp_path / "b", entry, limits=Limits(unpacked_bytes=999_999)).details["limit"] == "unpacked_bytes"


def test_attributes_up_to_the_limit_fit_the_store(tmp_path: Path) -> None:
    values = {f"user.{at:02}": b"x" * 60 for at in range(38)}
    unpacked(tmp_path / "t", file("a", xattrs=values))
    assert len(os.listxattr(tmp_path / "t" / "a")) == 38


def test_a_full_disk_is_not_the_images_fault(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    linux.mount("tmpfs", disk, "tmpfs", 0, "size=1m")
    try:
        outcome = unpack(disk / "t", tar([file("big", b"x" * 3_000_000)]))
    finally:
        linux.umount2(disk)
    assert isinstance(outcome, Refusal)
    assert outcome.reason == "no_space"


@pytest.mark.parametrize("capability", ["mknod", "sys_admin", "setfcap"])
def test_a_host_that_lacks_what_it_takes_is_unfit_and_the_image_is_not_judged(tmp_path: Path, capability: str) -> None:
    script = (
        "import pathlib, sys; from tests.support.unpacking import unpack;"
        "from tests.support.tar_entries import file, tar;"
        "print(unpack(pathlib.Path(sys.argv[1]), tar([file('../a')])).reason)"
    )
    command = ["setpriv", f"--bounding-set=-{capability}", sys.executable, "-c", script, str(tmp_path / "t")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "host_unfit"


def test_a_host_without_device_nodes_is_unfit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "mknod", refuse)
    folder_ = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    refusal = verdict(lambda: metadata.whiteout(folder_, b"w"))
    os.close(folder_)
    assert refusal is not None
    assert refusal.reason == "host_unfit"


def peak(pid: int) -> int:
    """Most memory that a process has had, in KiB."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1])


def folders_of_files(count: int) -> Iterator[bytes]:
    """So many folders with 50 files each."""
    for at in range(count):
        files = (file(f"f{at}/{'a-long-name' * 20}{n}", b"x") for n in range(50))
        yield tar([folder(f"f{at}"), *files], end=b"")


def test_memory_does_not_grow_with_the_layer(tmp_path: Path) -> None:
    peaks = {}
    for count in (10, 100):
        into = tmp_path / str(count)
        into.mkdir()
        with Unpacker(into, Limits()) as unpacker:
            for files in folders_of_files(count):
                unpacker.feed(files)
            # More than pipe and buffers hold, so that what came before has been unpacked.
            unpacker.feed(file("last", b"x" * 4 * 1024**2).to_bytes()[:-1024])
            peaks[count] = peak(child_of(unpacker).pid)
    assert peaks[100] - peaks[10] < 512, peaks


def child_of(unpacker: Unpacker) -> "subprocess.Popen[bytes]":
    assert unpacker._process is not None
    return unpacker._process


_BIG = file("first", b"1").to_bytes() + file("big", b"x" * 8 * 1024**2).to_bytes()
_BEGUN = 6 * 1024**2


def mid_way(unpacker: Unpacker) -> None:
    """Feed so much, of `_BIG`, that the child must have begun."""
    unpacker.feed(_BIG[:_BEGUN])


def test_the_child_is_confined(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with Unpacker(tmp_path / "t", Limits()) as unpacker:
        mid_way(unpacker)
        proc = Path(f"/proc/{child_of(unpacker).pid}")
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
        kept = sum(1 << capability for capability in (0, 1, 3, 4, 21, 27, 31))
        assert {int(status[name], 16) for name in ("CapBnd", "CapEff", "CapPrm")} == {kept}
        assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        for namespace in ("mnt", "net", "ipc", "uts"):
            assert (proc / "ns" / namespace).readlink() != Path(f"/proc/self/ns/{namespace}").readlink()
        mounts = (proc / "mountinfo").read_text().splitlines()
        assert [line.split()[4] for line in mounts] == ["/"]
        assert {"nodev", "nosuid", "noexec"} <= set(mounts[0].split()[5].split(","))
        assert sorted(path.name for path in (proc / "root").iterdir()) == ["big", "first"]
        assert (proc / "environ").read_bytes() == b""
        opened = {str(fd.readlink()).partition(":")[0] for fd in (proc / "fd").iterdir()}
        assert opened <= {"pipe", "/", "/big"}
        unpacker.finish()


def test_a_killed_child_is_a_fault_and_leaves_only_its_folder(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with Unpacker(tmp_path / "t", Limits()) as unpacker:
        mid_way(unpacker)
        child = child_of(unpacker)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        unpacker.feed(b"x" * 100_000)
        with pytest.raises(UnpackFaultError, match="-9"):
            unpacker.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_a_child_that_runs_out_of_something_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with Unpacker(tmp_path / "t", Limits()) as unpacker:
        mid_way(unpacker)
        subprocess.run(["prlimit", f"--pid={child_of(unpacker).pid}", "--nofile=4"], check=True)
        unpacker.feed(_BIG[_BEGUN:] + file("a/b/c").to_bytes())
        with pytest.raises(UnpackFaultError, match="Too many open files"):
            unpacker.finish()


def test_leaving_early_ends_the_child(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with Unpacker(tmp_path / "t", Limits()) as unpacker:
        mid_way(unpacker)
        pid = child_of(unpacker).pid
    assert not Path(f"/proc/{pid}").exists()


def test_after_a_refusal_the_rest_may_still_be_fed(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with Unpacker(tmp_path / "t", Limits()) as unpacker:
        unpacker.feed(file("../a").to_bytes())
        for _ in range(100):
            unpacker.feed(bytes(100_000))
        outcome = unpacker.finish()
    assert isinstance(outcome, Refusal)
    assert outcome.reason == "unsafe_layer_path"


def test_a_real_tree_is_as_gnu_tar_unpacks_it(tmp_path: Path) -> None:
    sources = ["etc", "usr/share/doc/bash", "usr/share/doc/apt"]
    there = [source for source in sources if Path("/", source).is_dir()]
    layer = subprocess.run(
        ["tar", "--xattrs", "--format=posix", "-C", "/", "-c", *there], check=True, capture_output=True
    ).stdout
    outcome = unpack(tmp_path / "ours", layer)
    assert isinstance(outcome, Unpacked), outcome
    (tmp_path / "theirs").mkdir()
    command = ["tar", "--xattrs", "--numeric-owner", "-xp", "-C", str(tmp_path / "theirs")]
    subprocess.run(command, check=True, input=layer)
    ours, theirs = tree_of(tmp_path / "ours", mtime=True), tree_of(tmp_path / "theirs", mtime=True)
    implied = {"usr", "usr/lib", "usr/share", "usr/share/doc"}
    assert set(ours) == set(theirs)
    assert len(ours) > 300
    assert [path for path in ours if path not in implied and ours[path] != theirs[path]] == []


def test_whiteouts_show_nothing_even_in_folders_of_their_own_layer(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    assert stack.add(tar([folder("only"), whiteout("only/x"), file("only/y")])) is None
    assert stack.add(tar([folder("other"), whiteout("other/x"), whiteout("no/such")])) is None
    assert stack.unpacked_again == [True, True]
    with stack.mounted() as root:
        assert set(tree_of(root)) == {"only", "only/y", "other"}
