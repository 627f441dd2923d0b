"""Kept state of sandboxes: `<snapshots>/<id>/` is an allocation's folder, under another name.

What ran has ended and nothing is mounted any more when the folder is renamed, in one step, after its bytes are
durable: a snapshot is there whole, or the allocation still is. Files keep their owners, so whoever starts from a
snapshot gets its range of ids, and nobody else gets that while it is here.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from sandbay.adapters.providers.oci.allocations import AllocationRecord
from sandbay.domain.canonical import rebuild
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import SnapshotId
from sandbay.domain.reasons import Reason
from sandbay.engine import linux
from sandbay.engine.durable import free_bytes, make_folder, no_space, remove_tree, sync_folder, write_file
from sandbay.ports.provider import SnapshotHeld

_KEPT, _LEFT = ("upper", "workspace"), "work"
_RECORD, _SIZE, _GONE = "allocation.json", "snapshot.json", ".gone-"
_FULL = "No space left on device"


class Snapshots:
    """Those of one provider, in the file system of its allocations."""

    def __init__(self, root: Path) -> None:
        """Make the root where it is new."""
        self._root = make_folder(root)

    def sweep(self) -> None:
        """End what was being dropped. Only whoever owns the provider's folders may."""
        for left in self._root.glob(f"{_GONE}*"):
            remove_tree(left)

    def held(self, snapshot: SnapshotId) -> SnapshotHeld | None:
        """It, when it is here whole."""
        try:
            size = json.loads((self._folder(snapshot) / _SIZE).read_text())["bytes"]
        except FileNotFoundError:
            return None
        return SnapshotHeld(snapshot, int(size))

    def keep(self, allocation: Path, snapshot: SnapshotId) -> SnapshotHeld:
        """Make it of an allocation's folder, in which nothing runs and nothing is mounted. May be repeated."""
        remove_tree(allocation / _LEFT)
        size = _bytes(allocation / name for name in _KEPT)
        part = allocation / f"{_SIZE}.part"
        part.unlink(missing_ok=True)
        write_file(allocation / _SIZE, json.dumps({"bytes": size}).encode(), part)
        descriptor = os.open(allocation, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            linux.syncfs(descriptor)
        finally:
            os.close(descriptor)
        allocation.rename(self._folder(snapshot))
        sync_folder(self._root)
        sync_folder(allocation.parent)
        return SnapshotHeld(snapshot, size)

    def record(self, snapshot: SnapshotId) -> AllocationRecord:
        """Of the allocation that it was. Refuses with `start_failed` where it is not here whole."""
        if self.held(snapshot) is None:
            raise RefusedError(
                Reason.START_FAILED, "the kept state is not on this node", details={"snapshot": snapshot}
            )
        return _read(self._folder(snapshot))

    def copy(self, snapshot: SnapshotId, allocation: Path) -> None:
        """Put what it has into a fresh allocation's folder; it stays as it is. Refuses with `no_space`."""
        sources = [str(self._folder(snapshot) / name) for name in _KEPT]
        command = ["cp", "--archive", "--reflink=auto", "--sparse=auto", "--", *sources, str(allocation)]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            return
        says = done.stderr.decode(errors="replace")
        if _FULL in says:
            raise no_space(self._needed(snapshot), free_bytes(allocation))
        lines = says.splitlines() or ["nobody knows why"]
        raise RefusedError(Reason.START_FAILED, "the kept state could not be copied", details={"says": lines[0]})

    def drop(self, snapshot: SnapshotId) -> None:
        """Let it go. An unknown one is fine."""
        gone = self._root / f"{_GONE}{snapshot}"
        try:
            self._folder(snapshot).rename(gone)
        except FileNotFoundError:
            pass
        else:
            sync_folder(self._root)
        remove_tree(gone)

    def all(self) -> Mapping[str, AllocationRecord]:
        """By id: whose ids are taken, and whose release is needed."""
        folders = [folder for folder in self._root.iterdir() if not folder.name.startswith(".")]
        return {folder.name: _read(folder) for folder in folders}

    def _needed(self, snapshot: SnapshotId) -> int:
        held = self.held(snapshot)
        return held.bytes if held else 0

    def _folder(self, snapshot: SnapshotId) -> Path:
        if not snapshot.isidentifier():
            raise RefusedError(Reason.START_FAILED, "this is no snapshot's id", details={"snapshot": snapshot})
        return self._root / snapshot


def _read(folder: Path) -> AllocationRecord:
    return rebuild(AllocationRecord, json.loads((folder / _RECORD).read_text()))


def _bytes(folders: Iterable[Path]) -> int:
    """What they take of the disk; `du`, because what a sandbox left may be nested deeper than Python can follow."""
    command = ["du", "--summarize", "--total", "--block-size=1", "--one-file-system", "--", *map(str, folders)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1].split()[0])
