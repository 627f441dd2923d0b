"""What is right for each awkward image, and whether a root file system is so. Imports nothing that takes time."""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "fixtures" / "images"


def differences(root: Path, expected: Mapping[str, Any]) -> list[str]:
    """What in a root file system is not as a fixture's `expected.json` has it; nothing when all is right."""
    wrong = [f"{want['path']}: {problem}" for want in expected["rootfs"] for problem in _wrong(root, want)]
    for path, name, value in expected.get("xattr", []):
        if name not in os.listxattr(root / path) or os.getxattr(root / path, name).hex() != value:
            wrong.append(f"{path}: attribute {name}")
    wrong += [f"{path}: has {name}" for path, name in expected.get("no_xattr", []) if name in os.listxattr(root / path)]
    return wrong


def _wrong(root: Path, want: Mapping[str, Any]) -> Iterator[str]:
    path = root / want["path"]
    if any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(root) and parent != root):
        yield "a parent is a link"
        return
    there = os.path.lexists(path)
    if there == bool(want.get("absent")):
        yield "is there" if there else "is missing"
    if not there or want.get("absent"):
        return
    status = path.lstat()
    kinds = {"file": stat.S_IFREG, "dir": stat.S_IFDIR, "symlink": stat.S_IFLNK}
    if stat.S_IFMT(status.st_mode) != kinds[want["type"]]:
        yield f"is no {want['type']}"
        return
    has: dict[str, object] = {
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "size": status.st_size,
    }
    if "link" in want:
        has["link"] = str(path.readlink())
    if "content" in want:
        has["content"] = path.read_text()
    if "tail_hex" in want:
        content = path.read_bytes()
        has["tail_hex"] = content[-len(want["tail_hex"]) // 2 :].hex()
        if any(content[:1000]):
            yield "a hole does not read as zeros"
    if "same_inode_as" in want:
        has["same_inode_as"] = want["same_inode_as"] if (root / want["same_inode_as"]).samefile(path) else None
    yield from (f"{name} is {value!r}" for name, value in has.items() if name in want and value != want[name])


def marks(root: Path) -> list[str]:
    """Names that only whiteouts have, in the root's own file system."""
    found: list[str] = []
    for at, folders, files in os.walk(root):
        folders[:] = [name for name in folders if Path(at, name).lstat().st_dev == root.stat().st_dev]
        found += [str(Path(at, name)) for name in (*folders, *files) if name.startswith(".wh.")]
    return found


def expected_of(fixture: Path) -> dict[str, Any]:
    """What is right for a fixture."""
    document: dict[str, Any] = json.loads((fixture / "expected.json").read_bytes())
    return document
