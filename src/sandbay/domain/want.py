"""What should be on nodes, and why: the nouns between `flow.want` and `flow.prepare`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from sandbay.domain.ids import NodeId
from sandbay.domain.release import ContentKey


class Why(IntEnum):
    """In the order in which prepares get their slots. A wish comes of demand; what is cached is there ahead of it."""

    REQUIRED = 0
    SESSION = 1
    WISH = 2
    CACHED = 3


@dataclass(frozen=True, slots=True)
class Need:
    """One reason to have a variant somewhere: on one node, or on every node of the pools that can run it."""

    key: ContentKey
    why: Why
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class WantedSet:
    """What one node should hold, strongest reason first."""

    items: tuple[tuple[ContentKey, Why], ...] = ()

    def reasons(self) -> Mapping[ContentKey, Why]:
        """Key → strongest reason."""
        return dict(self.items)


@dataclass(frozen=True, slots=True)
class Wants:
    """Per node."""

    by_node: Mapping[NodeId, WantedSet] = field(default_factory=dict)

    def of(self, node: NodeId) -> WantedSet:
        """What this node should hold."""
        return self.by_node.get(node, WantedSet())
