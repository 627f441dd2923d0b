"""Kept state of sandboxes: this provider does not declare that it can keep any, and says no to whoever asks anyway."""

from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId, SnapshotId
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import SnapshotHeld


class NoSnapshots:
    """The part of the port `Provider` that is about snapshots, where there are none."""

    def suspend(self, allocation: AllocationId, snapshot: SnapshotId) -> SnapshotHeld:
        """Nothing of the sandbox is touched."""
        details = {"allocation": allocation, "snapshot": snapshot}
        raise RefusedError(Reason.ABILITY_UNSUPPORTED, "this provider cannot suspend", details=details)

    def drop_snapshot(self, snapshot: SnapshotId) -> None:
        """There is none that could be there."""
