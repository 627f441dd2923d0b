"""Layers applied one after another to one tree in memory, by the format's words alone: the answer to compare with.

Knows nothing of overlays, and shares no code with the engine. What the words leave open, or forbid, is `OpenError`:
no promise is made for such a layer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.support.tar_entries import Entry
from tests.support.unpacking import Seen

_MOST_LINKS = 40
_KINDS = {b"0": "file", b"5": "folder", b"2": "link"}


class OpenError(Exception):
    """The format does not say what this layer comes to, or it is no layer."""


@dataclass(eq=False)
class Node:
    """A file, folder or link; a hard link is a second name for one."""

    kind: str
    mode: int = 0o755
    uid: int = 0
    content: bytes = b""
    below: dict[str, "Node"] = field(default_factory=dict)


class Applied:
    """A root file system to which layers are applied."""

    def __init__(self) -> None:
        self.root = Node("folder")
        self.linked: list[tuple[str, str]] = []
        """Names of one file, as the hard links of the newest layer made them."""

    def apply(self, layer: Sequence[Entry]) -> None:
        """Marks first, since they speak of lower layers only; then the entries in their order."""
        marks = [entry for entry in layer if b".wh." in entry.name]
        self._check_marks(layer, marks)
        self._described: set[tuple[int, str]] = set()
        self._passed: set[tuple[int, str]] = set()
        self.linked = []
        for mark in marks:
            self._hide(mark)
        for entry in layer:
            if entry not in marks:
                self._put(entry)

    @classmethod
    def of(cls, layers: Sequence[Sequence[Entry]]) -> "Applied":
        """All of them on an empty root."""
        applied = cls()
        for layer in layers:
            applied.apply(layer)
        return applied

    def twins(self) -> list[tuple[str, str]]:
        """The hard links of the newest layer whose two names still are one file, reached without a link."""
        nodes = {pair: [self._node_at(path) for path in pair] for pair in self.linked}
        return [pair for pair, (one, other) in nodes.items() if one is not None and one is other]

    def seen(self) -> dict[str, Seen]:
        """Everything in it by path."""
        return dict(self._seen(self.root, ""))

    def _seen(self, folder: Node, at: str) -> Iterator[tuple[str, Seen]]:
        for name, node in folder.below.items():
            yield at + name, Seen(node.kind, node.mode, (node.uid, 0), node.content)
            yield from self._seen(node, f"{at}{name}/")

    def _check_marks(self, layer: Sequence[Entry], marks: Sequence[Entry]) -> None:
        """Where a mark's own folder is moved about by the same layer, nobody can say which folder is meant."""
        named = {_path(entry) for entry in layer if entry.kind != b"5"}
        named |= {_path(mark).replace(".wh.", "", 1) for mark in marks}
        for mark in marks:
            parents = _parents(_path(mark))
            links = [parent for parent in parents if self._kind_at(parent) in (None, "link")]
            if any(parent in named for parent in links) or any(_path(e) in parents for e in layer if e.kind == b"2"):
                raise OpenError

    def _kind_at(self, path: str) -> str | None:
        node = self._node_at(path)
        return None if node is None else node.kind

    def _node_at(self, path: str) -> Node | None:
        node: Node | None = self.root
        for name in path.split("/"):
            node = None if node is None else node.below.get(name)
        return node

    def _hide(self, mark: Entry) -> None:
        at, _, name = _path(mark).rpartition("/")
        folder = self._folder(at, make=False)
        if folder is None:
            return
        if name == ".wh..wh..opq":
            folder.below.clear()
        else:
            folder.below.pop(name.removeprefix(".wh."), None)

    def _put(self, entry: Entry) -> None:
        at, _, name = _path(entry).rpartition("/")
        folder = self._folder(at, make=True)
        assert folder is not None
        there = folder.below.get(name)
        is_folder = entry.kind == b"5"
        key = (id(folder), name)
        if key in self._described or (key in self._passed and not (is_folder and _is_folder(there))):
            raise OpenError
        self._described.add(key)
        if entry.kind == b"1":
            target = self._target(entry)
            if target is there:
                raise OpenError
            folder.below[name] = target
            self.linked.append((_path(entry), entry.link.decode()))
            return
        if is_folder and there is not None and there.kind == "folder":
            there.mode, there.uid = entry.mode, entry.uid
            return
        content = entry.link if entry.kind == b"2" else entry.data
        folder.below[name] = Node(_KINDS[entry.kind], entry.mode, entry.uid, content)

    def _target(self, entry: Entry) -> Node:
        at, _, name = entry.link.decode().rpartition("/")
        folder = self._folder(at, make=False)
        node = None if folder is None else folder.below.get(name)
        if node is None or node.kind == "folder":
            raise OpenError
        return node

    def _folder(self, path: str, *, make: bool) -> Node | None:
        """The folder at a path, links followed inside the root; missing ones made, or None."""
        trail, todo, links = [self.root], path.split("/")[::-1], 0
        while todo:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                trail = trail[:-1] or [self.root]
                continue
            # What a path goes through belongs to the layer then: nothing but a folder may stand there later.
            self._passed.add((id(trail[-1]), name))
            node = trail[-1].below.setdefault(name, Node("folder")) if make else trail[-1].below.get(name)
            if node is None:
                return None
            if node.kind == "link":
                links += 1
                if links > _MOST_LINKS:
                    raise OpenError
                target = node.content.decode()
                trail = [self.root] if target.startswith("/") else trail
                todo.extend(target.split("/")[::-1])
            elif node.kind == "folder":
                trail.append(node)
            elif make:
                raise OpenError
            else:
                return None
        return trail[-1]


def _is_folder(node: Node | None) -> bool:
    return node is None or node.kind == "folder"


def _path(entry: Entry) -> str:
    return entry.name.decode().rstrip("/")


def _parents(path: str) -> list[str]:
    return [path[:at] for at, character in enumerate(path) if character == "/"]
