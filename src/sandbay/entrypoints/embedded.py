"""Core, its local nodes and the HTTP interface in one process, composed by hand.

SIGTERM stops the process and leaves sandboxes running: the next start adopts them. SIGINT (Ctrl-C, and what
`sandbay down` sends) ends every Session first, but those that are suspended: their files are there for the next start.
"""

import socket
from contextlib import ExitStack

import structlog
import uvicorn

from sandbay.adapters.node_link.inprocess import InProcessLink
from sandbay.app.core import SYSTEM
from sandbay.app.nodes import NodeReports
from sandbay.app.sessions import end_session
from sandbay.domain.session import FINAL, SessionState
from sandbay.entrypoints.core import CoreProcess
from sandbay.entrypoints.identities import identities
from sandbay.entrypoints.local_node import LocalNode, pool_names
from sandbay.entrypoints.settings import Settings
from sandbay.ports.store import Sessions

_END_SECONDS = 30.0
_PASS_SECONDS = 1.0
_PASS_GAP = 0.02

log = structlog.get_logger()


class Embedded:
    """One Core and one node in this process."""

    def __init__(self, settings: Settings) -> None:
        """Open everything; nothing runs yet."""
        self._link = InProcessLink()
        self._process = CoreProcess(settings, self._link)
        self.core = self._process.core
        self._nodes: list[LocalNode] = []
        self._open = ExitStack()
        try:
            who = identities(settings.home, settings.providers)
            for kind in settings.providers:
                node = LocalNode(settings, kind, self.core, self._link, who)
                self._open.callback(node.close)
                self._nodes.append(node)
        except BaseException:
            self.close()
            raise
        self._names = pool_names(settings.providers)

    def start(self) -> None:
        """Make the installation if it is new, connect the nodes, begin to reconcile."""
        self._process.install([node.pool(name) for node, name in zip(self._nodes, self._names, strict=True)])
        self._link.serve(NodeReports(self.core))
        for node in self._nodes:
            node.start()
        self._process.begin()

    def http(self) -> uvicorn.Server:
        """The HTTP interface, not serving yet."""
        return self._process.http()

    def serve(self, listener: socket.socket) -> None:
        """Serve HTTP on a bound socket until a signal says to stop."""
        self._process.serve(listener, self.end_sessions)

    def end_sessions(self) -> None:
        """End every Session but those that are suspended, and wait until nothing runs of them on this host."""
        live = frozenset(SessionState) - FINAL - {SessionState.SUSPENDED}
        deadline = self.core.clock.monotonic() + _END_SECONDS
        while records := self.core.store.read(Sessions(states=live)):
            for record in records:
                end_session(self.core, SYSTEM, record.session.id)
            if self.core.clock.monotonic() > deadline:
                log.error("some Sessions did not end in time", sessions=[r.session.id for r in records])
                return
            self.core.changed.wait(self.core.changed.version, 0.2)

    def close(self) -> None:
        """Stop reconciling and serving commands. Sandboxes that run go on."""
        self._process.rest()
        self._open.close()
        self._process.close()
