"""Who needs which variant and which range of ids: written down before anything is made with it."""

import threading
from dataclasses import dataclass, field, replace
from signal import Signals

from sandbay.adapters.providers.oci.allocations import AllocationFolders, AllocationRecord
from sandbay.adapters.providers.oci.freeing import Freer
from sandbay.adapters.providers.oci.identity import HeldImage
from sandbay.adapters.providers.oci.ranges import Block, foreign_ranges, free_base, subids
from sandbay.adapters.providers.oci.snapshots import Snapshots
from sandbay.adapters.providers.oci.starting import Places, start_failed
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import SnapshotId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from sandbay.engine.store import LayerStore
from sandbay.ports.provider import SnapshotHeld


@dataclass(frozen=True)
class Claims:
    """Those of one provider. Whoever holds `lock` sees none appear."""

    owner: str
    block: Block
    layers: LayerStore
    folders: AllocationFolders
    snapshots: Snapshots
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, wanted: AllocationRecord, snapshot: SnapshotId | None = None) -> tuple[AllocationRecord, HeldImage]:
        """Write down that it needs the variant, and that a range is its own: a free one, or the snapshot's."""
        with self.lock:
            image = self.layers.verified(wanted.key)
            base = self._free() if snapshot is None else self._of(snapshot, wanted.key)
            record = replace(wanted, base=base)
            self.folders.add(record)
            self.layers.touch(record.key)
            return record, image

    def free(self, freer: Freer, places: Places, stop_signal: Signals | None = None) -> None:
        """End an allocation, and what all of them share with the last one.

        Whoever starts a sandbox has claimed it first: with no claim, nobody is about to make a group in the parent.
        """
        freer.free(places, stop_signal)
        with self.lock:
            freer.drop_shared()

    def keep(self, freer: Freer, places: Places, snapshot: SnapshotId, stop_signal: Signals) -> SnapshotHeld:
        """The same, but what it has written becomes a snapshot: whose the range is, is never in doubt."""
        freer.halt(places, stop_signal)
        with self.lock:
            held = self.snapshots.keep(places.durable, snapshot)
            freer.drop_shared()
        return held

    def drop(self, key: ContentKey) -> None:
        """Drop a variant's bytes that nothing else shares. Refuses with `in_use` while anything here needs it."""
        with self.lock:
            if users := [record.allocation for record in self.folders.all() if record.key == key]:
                raise RefusedError(Reason.IN_USE, "allocations run from it", details={"allocations": users})
            if kept := [name for name, record in self.snapshots.all().items() if record.key == key]:
                raise RefusedError(Reason.IN_USE, "kept state stands on it", details={"snapshots": kept})
            self.layers.remove(key)

    def _free(self) -> int:
        taken = self.folders.bases() | {record.base for record in self.snapshots.all().values()}
        base = free_base(self.block, self.owner, taken, foreign_ranges(subids()))
        if base is None:
            raise start_failed("all user id ranges are taken", ranges=self.block.count)
        return base

    def _of(self, snapshot: SnapshotId, key: ContentKey) -> int:
        record = self.snapshots.record(snapshot)
        if record.key != key:
            raise start_failed("the kept state is another release's", snapshot=snapshot)
        return record.base
