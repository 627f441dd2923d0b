"""Core and its nodes in one process: a call is a call."""

import threading
from collections.abc import Mapping, Sequence

from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId, NodeId
from sandbay.domain.readiness import Readiness
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey
from sandbay.domain.template import FrozenTemplate
from sandbay.ports.node_link import AllocationReport, CheckOutcome, CoreReports, Hello, NodeCommands, Welcome


class InProcessLink:
    """Both ends: `reach` is Core's, the rest is what nodes call. Nodes that said hello can be reached."""

    def __init__(self) -> None:
        """Nobody is connected; `serve` comes first."""
        self._lock = threading.Lock()
        self._nodes: dict[NodeId, NodeCommands] = {}
        self._reports: CoreReports | None = None

    def serve(self, reports: CoreReports) -> None:
        """Core is ready to hear from nodes."""
        self._reports = reports

    def reach(self, node: NodeId) -> NodeCommands:
        """The node's commands, or `no_node_online`."""
        with self._lock:
            commands = self._nodes.get(node)
        if commands is None:
            raise RefusedError(Reason.NO_NODE_ONLINE, f"node {node} is not connected", details={"node": node})
        return commands

    def leave(self, node: NodeId) -> None:
        """The node is gone."""
        with self._lock:
            self._nodes.pop(node, None)

    def hello(self, hello: Hello, commands: NodeCommands) -> Welcome:
        """Connect."""
        welcome = self._core().hello(hello, commands)
        with self._lock:
            self._nodes[hello.node] = commands
        return welcome

    def heartbeat(self, node: NodeId, epoch: int, *, warm: bool) -> bool:
        """Pass on."""
        return self._core().heartbeat(node, epoch, warm=warm)

    def readiness(self, node: NodeId, epoch: int, key: ContentKey, readiness: Readiness) -> bool:
        """Pass on."""
        return self._core().readiness(node, epoch, key, readiness)

    def spare(self, node: NodeId, epoch: int, keys: Sequence[ContentKey]) -> frozenset[ContentKey]:
        """Pass on."""
        return self._core().spare(node, epoch, keys)

    def allocation(self, node: NodeId, epoch: int, report: AllocationReport) -> bool:
        """Pass on."""
        return self._core().allocation(node, epoch, report)

    def checked(self, node: NodeId, epoch: int, outcome: CheckOutcome) -> bool:
        """Pass on."""
        return self._core().checked(node, epoch, outcome)

    def template(self, node: NodeId, allocation: AllocationId) -> FrozenTemplate | None:
        """Pass on."""
        return self._core().template(node, allocation)

    def secrets(self, node: NodeId, allocation: AllocationId) -> Mapping[str, str]:
        """Pass on."""
        return self._core().secrets(node, allocation)

    def _core(self) -> CoreReports:
        if self._reports is None:
            raise RefusedError(Reason.NO_NODE_ONLINE, "Core is not ready")
        return self._reports
