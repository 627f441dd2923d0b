"""Stacks of layers: what a sandbox sees is what applying one layer after another gives, never something else."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbay.engine.lower import Needs, needs_lower_view
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


@dataclasses.dataclass
class Model:
    """A root file system as a dict, to which layers are applied as the format's text says: marks first."""

    seen: dict[str, Seen] = dataclasses.field(default_factory=dict)

    def apply(self, entries: Sequence[Entry]) -> None:
        marks = [entry for entry in entries if b".wh." in entry.name]
        for mark in marks:
            parent, _, name = mark.name.decode().rpartition("/")
            if name == ".wh..wh..opq":
                self._remove_below(parent)
            else:
                hidden = f"{parent}/{name[4:]}".lstrip("/")
                self._remove_below(hidden)
                self.seen.pop(hidden, None)
        for entry in entries:
            if entry not in marks:
                self._put(entry)

    def _remove_below(self, folder: str) -> None:
        self.seen = {path: seen for path, seen in self.seen.items() if folder and not path.startswith(folder + "/")}

    def _put(self, entry: Entry) -> None:
        path = entry.name.decode().rstrip("/")
        parents = [path[:at] for at, character in enumerate(path) if character == "/"]
        for parent in parents:
            self.seen.setdefault(parent, Seen("folder", 0o755, (0, 0)))
        is_folder = entry.kind == b"5"
        there = self.seen.get(path)
        if there is not None and not (is_folder and there.kind == "folder"):
            self._remove_below(path)
        self.seen[path] = Seen("folder" if is_folder else "file", entry.mode, (entry.uid, 0), entry.data)


PARTS = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
ENTRIES = st.one_of(
    st.builds(folder, PATHS, st.sampled_from([0o755, 0o700]), uid=st.integers(0, 1)),
    st.builds(folder, PATHS, st.sampled_from([0o755, 0o700]), uid=st.integers(0, 1)),
    st.builds(file, PATHS, st.sampled_from(["", "x", "y"]), uid=st.integers(0, 1)),
    st.builds(whiteout, PATHS),
    st.builds(opaque, PATHS),
)


def path_of(entry: Entry) -> str:
    return entry.name.decode().rstrip("/")


def is_honest(layer: Sequence[Entry], below: dict[str, Seen]) -> bool:
    """No path twice, nothing below a file of the same layer or through one of a lower layer."""
    files = {path_of(entry) for entry in layer if entry.kind == b"0" and b".wh." not in entry.name}
    folders = {path_of(entry) for entry in layer if entry.kind == b"5"}
    for entry in layer:
        parents = [path_of(entry)[:at] for at, character in enumerate(path_of(entry)) if character == "/"]
        if any(parent in files for parent in parents):
            return False
        if any(parent in below and below[parent].kind == "file" and parent not in folders for parent in parents):
            return False
    return True


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(ENTRIES, max_size=7, unique_by=path_of), min_size=1, max_size=3))
def test_any_stack_is_the_layers_one_after_another(layers: list[list[Entry]]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as place:
        stack = Stack(Path(place))
        for layer in layers:
            if is_honest(layer, model.seen):
                assert stack.add(tar(layer)) is None
                model.apply(layer)
        with stack.mounted() as root:
            assert tree_of(root) == model.seen
