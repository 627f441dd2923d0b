"""Stacks of layers: what a sandbox sees is what applying one layer after another gives, never something else."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from sandbay.engine import rootfs
from sandbay.engine.lower import Needs, needs_lower_view
from tests.engine.store_support import Host
from tests.support.oci_layout import Layout
from tests.support.sequential import Applied, OpenError
from tests.support.tar_entries import Entry, file, folder, hardlink, opaque, symlink, tar, whiteout
from tests.support.unpacking import Seen, Stack, look, needs_unpacking, tree_of

pytestmark = needs_unpacking

BASE = [
    folder("tmp", mode=0o1777, mtime=5),
    folder("home"),
    folder("home/agent", mode=0o700, uid=1000, gid=1001, mtime=6, xattrs={"user.note": b"n"}),
    file("home/agent/.old", "old", uid=1000),
    folder("usr/bin"),
    symlink("bin", "usr/bin"),
    file("usr/bin/probe", "probe", mode=0o4755, uid=2, xattrs={"user.note": b"p"}, mtime=7),
    symlink("usr/bin/alias", "probe", uid=3),
    folder("plain"),
    file("plain/f", "f"),
]


def stacked(folder_: Path, *layers: Sequence[Entry]) -> Stack:
    stack = Stack(folder_)
    for layer in layers:
        refusal = stack.add(tar(layer))
        assert refusal is None, refusal
    return stack


def test_implied_folders_are_what_they_are_below(tmp_path: Path) -> None:
    stack = stacked(tmp_path, BASE, [file("tmp/y", "y"), file("home/agent/deep/.x", "x", uid=1000)])
    assert stack.unpacked_again == [False, True]
    with stack.mounted() as root:
        assert look(root / "tmp", mtime=True) == Seen("folder", 0o1777, (0, 0), mtime=5_000_000_000)
        assert look(root / "home/agent", mtime=True) == Seen("folder", 0o700, (1000, 1001), mtime=6_000_000_000)
        assert look(root / "home/agent/deep") == Seen("folder", 0o755, (0, 0))
        assert (root / "home/agent/.old").read_text() == "old"
        assert (root / "home/agent/deep/.x").read_text() == "x"
    assert look(stack.trees[0] / "home/agent").owner == (1000, 1001)


def test_paths_through_links_below_lead_where_they_lead(tmp_path: Path) -> None:
    stack = stacked(tmp_path, BASE, [file("bin/tool", "t"), whiteout("bin/probe")])
    with stack.mounted() as root:
        assert look(root / "bin") == Seen("link", 0o777, (0, 0), b"usr/bin")
        assert sorted(path.name for path in (root / "usr/bin").iterdir()) == ["alias", "tool"]


def test_hard_links_bring_their_target_along(tmp_path: Path) -> None:
    layer = [hardlink("tool", "bin/probe"), hardlink("again", "/usr/bin/probe"), hardlink("alias", "usr/bin/alias")]
    stack = stacked(tmp_path, BASE, layer)
    with stack.mounted() as root:
        assert look(root / "tool", mtime=True) == Seen("file", 0o4755, (2, 0), b"probe", 7_000_000_000)
        assert (root / "tool").samefile(root / "usr/bin/probe")
        assert (root / "again").samefile(root / "tool")
        assert look(root / "alias") == Seen("link", 0o777, (3, 0), b"probe")
    assert (stack.trees[0] / "tool").stat().st_nlink == 3


@pytest.mark.parametrize(
    "layer, reason",
    [
        ([hardlink("a", "no/such")], "malformed_layer"),
        ([hardlink("a", "/no/such")], "unsafe_link"),
        ([hardlink("a", "home/agent")], "unsafe_link"),
        ([whiteout("plain"), hardlink("a", "plain/f")], "malformed_layer"),
        ([opaque("plain"), hardlink("a", "plain/f")], "malformed_layer"),
        ([hardlink("a", "b"), file("plain/f/below")], "malformed_layer"),
        ([hardlink("a", "bin/probe"), file("a")], "malformed_layer"),
        ([hardlink("plain/f", "plain/f")], "malformed_layer"),
        ([hardlink("bin/probe", "usr/bin/probe")], "malformed_layer"),
        ([file("plain/f/below")], "malformed_layer"),
    ],
)
def test_what_is_not_there_below_is_refused(layer: list[Entry], reason: str, tmp_path: Path) -> None:
    stack = stacked(tmp_path, BASE)
    refusal = stack.add(tar(layer))
    assert refusal is not None
    assert refusal.reason == reason
    lowest = Stack(_made(tmp_path / "alone"))
    if layer[0].kind == b"1":
        assert lowest.add(tar(layer)) is not None, "the lowest layer has nothing below it"


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def test_an_opaque_root_hides_all_that_is_below(tmp_path: Path) -> None:
    stack = stacked(tmp_path, BASE, [file("bin/new", "n"), opaque("."), whiteout("x")])
    assert stack.unpacked_again == [False, False]
    assert set(tree_of(stack.trees[0])) == {"bin", "bin/new"}


NEEDS = {
    "nothing": (Needs(), False),
    "a plain folder": (Needs(implied=("plain",)), False),
    "nothing there": (Needs(implied=("new", "new/deeper")), False),
    "a folder of somebody": (Needs(implied=("home", "home/agent")), True),
    "a sticky folder": (Needs(implied=("tmp",)), True),
    "a link": (Needs(implied=("bin",)), True),
    "a file": (Needs(implied=("plain/f",)), True),
    "a folder with attributes": (Needs(implied=("noted",)), True),
    "below a link": (Needs(implied=("bin/alias",)), False),
    "cut off by an opaque folder": (Needs(implied=("cut/tmp",)), False),
    "whited out": (Needs(implied=("gone",)), False),
    "a hard link": (Needs(late=(("a", "b"),)), True),
    "whiteouts in a folder below": (Needs(whiteouts=("", "plain", "usr/bin")), False),
    "whiteouts where no folder is": (Needs(whiteouts=("new",)), True),
    "whiteouts through a link": (Needs(whiteouts=("bin",)), True),
    "whiteouts in what is whited out": (Needs(whiteouts=("gone",)), True),
    "whiteouts below an opaque folder": (Needs(whiteouts=("cut/tmp",)), True),
}


@pytest.mark.parametrize("name", NEEDS)
def test_when_the_lower_view_is_needed(name: str, tmp_path: Path) -> None:
    lower = [*BASE, folder("noted", xattrs={"user.x": b"1"}), folder("cut/tmp", mode=0o1777), folder("gone", uid=3)]
    upper = [folder("cut"), opaque("cut"), whiteout("gone"), folder("usr/bin")]
    stack = stacked(tmp_path, lower, upper)
    needs, expected = NEEDS[name]
    assert needs_lower_view(needs, stack.trees) is expected


PARTS = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
MODES = st.sampled_from([0o755, 0o700])
TARGETS = st.sampled_from(["a", "b", "/c", "/a/b", "../b", "b/c", "."])
FOLDERS = st.builds(folder, PATHS, MODES, uid=st.integers(0, 1))
FILES = st.builds(file, PATHS, st.sampled_from(["", "x", "y"]), uid=st.integers(0, 1))
ENTRIES = st.one_of(
    FOLDERS,
    FOLDERS,
    FILES,
    FILES,
    st.builds(symlink, PATHS, TARGETS, uid=st.integers(0, 1)),
    st.builds(hardlink, PATHS, PATHS),
    st.builds(whiteout, PATHS),
    st.builds(opaque, PATHS),
)
LAYERS = st.lists(
    st.lists(ENTRIES, max_size=7, unique_by=lambda entry: entry.name.rstrip(b"/")), min_size=1, max_size=4
)
USR_MERGE = [
    [folder("a", 0o700, uid=1), symlink("b", "a"), file("a/c", "x")],
    [file("b/a", "y"), hardlink("c", "b/c")],
    [whiteout("b/c"), file("b/b/c", "x")],
]


def promised(layers: Sequence[Sequence[Entry]]) -> tuple[list[Sequence[Entry]], Applied]:
    """The layers whose outcome the format settles, and what they come to one after another."""
    kept: list[Sequence[Entry]] = []
    for layer in layers:
        with contextlib.suppress(OpenError):
            Applied.of([*kept, layer])
            kept.append(layer)
    return kept, Applied.of(kept)


def told(layers: Sequence[Sequence[Entry]]) -> str:
    """The layers for whoever reads of a failure."""
    return "\n---\n".join(
        "\n".join(f"{e.kind!r} {e.name!r} {e.mode:o} {e.uid} {e.link!r} {e.data!r}" for e in layer) for layer in layers
    )


def compare(root: Path, applied: Applied) -> None:
    assert tree_of(root) == applied.seen()
    inodes = [[(root / path).lstat().st_ino for path in pair] for pair in applied.twins()]
    assert [pair for pair in inodes if pair[0] != pair[1]] == []


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(LAYERS)
@example(USR_MERGE)
def test_any_stack_is_the_layers_one_after_another(layers: list[list[Entry]]) -> None:
    kept, applied = promised(layers)
    note(told(kept))
    with tempfile.TemporaryDirectory() as place:
        stack = stacked(Path(place), *kept)
        with stack.mounted() as root:
            compare(root, applied)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(LAYERS)
@example(USR_MERGE)
def test_so_it_is_where_the_store_unpacks_side_by_side(layers: list[list[Entry]]) -> None:
    kept, applied = promised(layers)
    note(told(kept))
    with tempfile.TemporaryDirectory() as place:
        host = Host(Path(place))
        layout = Layout(Path(place) / "layout")
        layout.image(kept, platform="linux/amd64")
        variant = host.register(layout.path)
        assert host.verdict(variant) is None
        record = host.store.verified(variant.content_key)
        folders = [_made(Path(place) / name) for name in ("mounts", "upper", "work")]
        try:
            mounts, upper, work = folders
            compare(
                rootfs.assemble(record.layers_folder, record.lowers, mounts=mounts, upper=upper, work=work, id_base=0),
                applied,
            )
        finally:
            rootfs.dismantle(folders[0])
