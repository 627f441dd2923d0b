"""How much the store's bytes are, what shares them, and whether an image can fit before any layer of it is fetched."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from sandbay.domain.disk import Coming, Disk, DiskBudget, HeldVariant, coming
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Layer
from sandbay.engine.durable import free_bytes, no_space
from sandbay.engine.layers import LayerTrees
from sandbay.engine.records import Records

_ENTRY_BYTES = 2048
"""What an entry takes beside its bytes: its inode, and the rest of its last block. Measured on real images, ±3 %."""


class Usage:
    """Of one store. A tree never changes while it is there, so nothing is read twice."""

    def __init__(self, root: Path, trees: LayerTrees, records: Records, budget: DiskBudget) -> None:
        """Take what to count and the budget that it counts against."""
        self._root, self._trees, self._records, self._budget = root, trees, records, budget
        self._sizes: dict[str, int] = {}
        self._parts: dict[ContentKey, frozenset[str]] = {}

    def disk(self) -> Disk:
        """As it is now. A tree is named by its key."""
        sizes = {key: self._size(key) for key in self._trees.known()}
        parts = {key: size for key, size in sizes.items() if size is not None}
        found = os.statvfs(self._root)
        free, total = free_bytes(self._root), found.f_blocks * found.f_frsize
        held = tuple(it for key in self._records.known() if (it := self._held(key, parts)) is not None)
        return Disk(parts, held, self._budget.marks(sum(parts.values()), free, total), free)

    def refuse_unless_room(self, layers: Iterable[Layer]) -> None:
        """Refuses with `no_space` what cannot fit, however small its layers turn out to be."""
        disk, asked = self.disk(), coming(layers)
        needed = _missing(disk, asked)
        left = disk.marks.budget - disk.used
        if needed > max(left, 0):
            facts = {"needed": needed, "used": disk.used, "budget": disk.marks.budget, "free": disk.free}
            message = f"it needs at least {needed} bytes, and {max(left, 0)} are left for images on this node"
            raise RefusedError(Reason.NO_SPACE, message, details=facts)

    def measured(self, refusal: RefusedError, layers: Iterable[Layer]) -> RefusedError:
        """The same refusal; where the disk ran out on the way, with what was needed at least and what is free now."""
        if refusal.refusal.reason is not Reason.NO_SPACE or "needed" in refusal.refusal.details:
            return refusal
        disk = self.disk()
        return no_space(_missing(disk, coming(layers)), disk.free)

    def _size(self, key: str) -> int | None:
        if key not in self._sizes:
            record = self._trees.record(key)
            if record is None:
                return None
            self._sizes[key] = size_of(record.bytes, record.entries)
        return self._sizes[key]

    def _held(self, key: ContentKey, there: Iterable[str]) -> HeldVariant | None:
        used_at = self._records.used_at(key)
        if used_at is None:
            return None
        if key not in self._parts:
            try:
                stored = self._records.read(key)
            except RefusedError:
                return None
            if stored is None:
                return None
            self._parts[key] = frozenset(layer.key for layer in stored.layers)
        moment = datetime.fromtimestamp(used_at, UTC)
        return HeldVariant(key, self._parts[key].intersection(there), moment)


def size_of(in_files: int, entries: int) -> int:
    """Bytes that a tree takes on the disk, to within a few percent and without walking it."""
    return in_files + entries * _ENTRY_BYTES


def _missing(disk: Disk, asked: Coming) -> int:
    return sum(size for part, size in asked.least.items() if part not in disk.parts)
