"""An allocation: one lease of compute on a node for a Session. Open until closed; never two open at once.

reserved ─start▶ starting ─booted▶ running ─stop, exit or fault▶ stopping ─gone▶ closed
running ─suspend▶ suspending ─its state is kept as a snapshot, and it is gone▶ closed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sandbay.domain.declaration import Network
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import AllocationId, FrozenId, NodeId, SessionId, SnapshotId
from sandbay.domain.release import Fault
from sandbay.domain.setup import SETUP_SECONDS


class AllocationState(StrEnum):
    """CLOSED is the only state in which nothing of it is left on the node."""

    RESERVED = "reserved"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDING = "suspending"
    STOPPING = "stopping"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Allocation:
    """Core's record. It carries the frozen release's id and digest, which never change."""

    id: AllocationId
    session: SessionId
    node: NodeId
    pool: str
    size: SandboxSize
    frozen: FrozenId
    frozen_digest: str
    state: AllocationState = AllocationState.RESERVED
    fault: Fault | None = None


@dataclass(frozen=True)
class Order:
    """Everything a node is told to run one allocation: the frozen identity leaves no choice to it.

    `setup_network` is what it has while it is initialised, where that is not `network`. `template_digest` names the
    frozen Template that it is initialised from, None when there is nothing to do; that may take `setup_seconds`.
    With a `snapshot` it starts from that state instead of an empty one.
    """

    allocation: AllocationId
    session: SessionId
    frozen: FrozenRelease
    size: SandboxSize
    network: Network = Network.DISABLED
    env: Mapping[str, str] | None = None
    setup_network: Network | None = None
    template_digest: str | None = None
    setup_seconds: float = SETUP_SECONDS
    snapshot: SnapshotId | None = None

    @property
    def networks(self) -> tuple[Network, Network]:
        """What it starts with, and what it has from the end of its initialisation on. It never gets another."""
        return (self.setup_network or self.network, self.network)


class Presence(StrEnum):
    """What a provider sees of an allocation. UNKNOWN is not "no"."""

    RUNNING = "running"
    EXITED = "exited"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Booted:
    """What the running thing itself says it was booted from, and its first process as the host sees it."""

    artifacts: Mapping[str, str]
    host_pid: int
    runtime: str


def mismatch(frozen: FrozenRelease, booted: Booted) -> Mapping[str, tuple[str, str | None]]:
    """Artifact → (frozen, booted) for each that differs; empty when what runs is what was frozen."""
    return {
        name: (artifact.value, booted.artifacts.get(name))
        for name, artifact in frozen.artifacts.items()
        if booted.artifacts.get(name) != artifact.value
    }
