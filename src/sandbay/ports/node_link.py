"""Between Core and nodes: what each side can tell the other. Transports carry it; they decide nothing.

Contract: a call to a node that is away refuses with `no_node_online`; nothing is queued or replayed. What a
node says carries its epoch; Core drops what an older epoch says.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sandbay.domain.allocation import AllocationState, Booted, Order
from sandbay.domain.command import Command
from sandbay.domain.contract import CheckOrder, ContractReport
from sandbay.domain.declaration import Network
from sandbay.domain.disk import Disk
from sandbay.domain.ids import AllocationId, NodeId, SnapshotId
from sandbay.domain.platform import Platform
from sandbay.domain.readiness import Readiness
from sandbay.domain.release import ContentKey, Fault, Variant
from sandbay.domain.setup import SetupProgress
from sandbay.domain.template import FrozenTemplate
from sandbay.domain.want import WantedSet
from sandbay.ports.provider import Emit, Exit, Files, OnStart


@dataclass(frozen=True)
class Hello:
    """What a node says of itself when it connects. `held` is what it found on disk, not yet proved again."""

    node: NodeId
    name: str
    provider: str
    runtime: str
    platform: Platform
    slots: int
    held: Sequence[ContentKey] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    networks: frozenset[Network] = frozenset({Network.DISABLED})


@dataclass(frozen=True)
class Wanted:
    """What the node should hold, and the variants behind the keys."""

    items: WantedSet = field(default_factory=WantedSet)
    variants: Mapping[ContentKey, Variant] = field(default_factory=dict)


@dataclass(frozen=True)
class Assigned:
    """An open allocation of this node, as Core has it. `snapshot`: what it is suspended to, while it is."""

    order: Order
    state: AllocationState
    snapshot: SnapshotId | None = None


@dataclass(frozen=True)
class Welcome:
    """The answer to hello: the epoch that every later report carries, what to hold, and what to run."""

    epoch: int
    wanted: Wanted
    assigned: Sequence[Assigned]


@dataclass(frozen=True)
class AllocationReport:
    """What became of an allocation: STARTING with how far its setup is, RUNNING with what booted, or CLOSED.

    CLOSED comes with or without a fault, or with the bytes of the snapshot that is kept of it. RUNNING comes with a
    fault where it could not be suspended and runs on.
    """

    allocation: AllocationId
    state: AllocationState
    booted: Booted | None = None
    fault: Fault | None = None
    setup: SetupProgress | None = None
    snapshot_bytes: int | None = None


@dataclass(frozen=True)
class CheckOutcome:
    """What a check saw, or the fault of host or transfer for which it saw nothing and will be tried again."""

    order: CheckOrder
    report: ContractReport | None = None
    fault: Fault | None = None


class NodeCommands(Protocol):
    """What Core tells one node.

    Everything but `disk`, `drop_snapshot`, `exec`, `files` and `verify` returns at once; outcomes come as reports.
    """

    def want(self, wanted: Wanted) -> None:
        """Reconcile towards this set."""

    def retry(self, key: ContentKey) -> None:
        """Prepare a failed variant again, now."""

    def drop(self, key: ContentKey, attempt: int) -> None:
        """The grant that ends a pin: remove what this attempt brought, if it is still unwanted."""

    def verify(self, variant: Variant, read: Callable[[int], None]) -> None:
        """As `Provider.verify`, to its end. What is damaged is reported as lost before it is refused here."""

    def disk(self) -> Disk | None:
        """As `Provider.disk`."""

    def start_allocation(self, order: Order) -> None:
        """Run an allocation. Repeating it is harmless."""

    def stop_allocation(self, allocation: AllocationId) -> None:
        """End an allocation. Repeating it, or an unknown one, is harmless."""

    def suspend_allocation(self, allocation: AllocationId, snapshot: SnapshotId) -> None:
        """Keep its state under this id and end it. Repeating it is harmless."""

    def drop_snapshot(self, snapshot: SnapshotId) -> None:
        """Let go of kept state, to the end. An unknown one is harmless."""

    def check(self, order: CheckOrder) -> None:
        """Start a sandbox of the variant and look at its tools. Repeating it while that is under way is harmless."""

    def exec(
        self,
        allocation: AllocationId,
        command: Command,
        *,
        stdin: Iterable[bytes] = (),
        emit: Emit,
        cancel: threading.Event | None = None,
        on_start: OnStart | None = None,
    ) -> Exit:
        """As `Provider.exec`."""

    def files(self, allocation: AllocationId) -> Files:
        """As `Provider.files`."""

    def booted(self, allocation: AllocationId) -> Booted:
        """As `Provider.booted`."""


class CoreReports(Protocol):
    """What a node tells Core. Refused reports return False and change nothing."""

    def hello(self, hello: Hello, commands: NodeCommands) -> Welcome:
        """Connect; a new epoch begins."""

    def heartbeat(self, node: NodeId, epoch: int, *, warm: bool) -> bool:
        """Still here."""

    def readiness(self, node: NodeId, epoch: int, key: ContentKey, readiness: Readiness) -> bool:
        """A variant's readiness moved, or its bytes did."""

    def spare(self, node: NodeId, epoch: int, keys: Sequence[ContentKey]) -> frozenset[ContentKey]:
        """The node is short of room and could do without these: those that it is granted to drop.

        A grant ends the pin. What is not granted now may be asked for again.
        """

    def allocation(self, node: NodeId, epoch: int, report: AllocationReport) -> bool:
        """An allocation moved."""

    def checked(self, node: NodeId, epoch: int, outcome: CheckOutcome) -> bool:
        """A check has ended."""

    def template(self, node: NodeId, allocation: AllocationId) -> FrozenTemplate | None:
        """What an open allocation of this node is to be initialised from; None when there is no such thing."""

    def secrets(self, node: NodeId, allocation: AllocationId) -> Mapping[str, str]:
        """Variables of every program of its initialisation; kept nowhere. Refuses with `secret_unknown`."""


class NodeLink(Protocol):
    """Core's way to its nodes."""

    def reach(self, node: NodeId) -> NodeCommands:
        """The node's commands. Refuses with `no_node_online`."""
