"""A node: a process that serves one provider with one runtime on a host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Pool
from sandbay.domain.ids import NodeId
from sandbay.domain.platform import Platform
from sandbay.domain.readiness import Readiness

HEARTBEAT = timedelta(seconds=10)
ONLINE_FOR = timedelta(seconds=45)
"""A node is online while heard from this recently, by Core's own clock."""


@dataclass(frozen=True, slots=True)
class Node:
    """What a node said of itself at `hello`, and what Core knows of it. `epoch` rises with every hello.

    `networks`: the modes that it enforces on its host.
    """

    id: NodeId
    name: str
    provider: str
    runtime: str
    platform: Platform
    slots: int
    labels: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0
    last_seen: datetime | None = None
    warm: bool = False
    networks: frozenset[Network] = frozenset({Network.DISABLED})

    def online(self, now: datetime) -> bool:
        """Heard from lately."""
        return self.last_seen is not None and now - self.last_seen <= ONLINE_FOR

    def serves(self, pool: Pool) -> bool:
        """Whether the node belongs to a pool: same provider and platform, and every selected label."""
        return (
            self.provider == pool.provider
            and self.platform == pool.platform
            and pool.node_selector.items() <= self.labels.items()
        )


@dataclass(frozen=True, slots=True)
class NodeView:
    """What `place` looks at: one node, and its readiness for the one variant that is asked for."""

    node: Node
    online: bool
    active: int
    readiness: Readiness
