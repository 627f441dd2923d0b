"""Core, one local node and the HTTP interface in one process, composed by hand.

SIGTERM stops the process and leaves sandboxes running: the next start adopts them. SIGINT (Ctrl-C, and what
`sandbay down` sends) ends every Session first.
"""

import os
import platform
import socket

import structlog
import uvicorn

from sandbay.adapters.node_link.inprocess import InProcessLink
from sandbay.app.core import SYSTEM
from sandbay.app.installation import host_platform
from sandbay.app.nodes import NodeReports
from sandbay.app.sessions import end_session
from sandbay.domain.deployment import Pool, SandboxSize
from sandbay.domain.session import FINAL, SessionState
from sandbay.entrypoints.core import CoreProcess
from sandbay.entrypoints.identities import identities
from sandbay.entrypoints.providers import open_provider
from sandbay.entrypoints.settings import Settings
from sandbay.node.agent import Agent, Identity
from sandbay.ports.store import Sessions

LOCAL_POOL = "local"
_LEAST_SLOTS = 8
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
        who = identities(settings.home)
        self._provider = open_provider(settings, self.core.blobs, who.installation)
        size = SandboxSize()
        identity = Identity(who.node, platform.node() or "local", self._provider.runtime, host_platform(), slots(size))
        self._agent = Agent(identity, self._provider, self._link, self.core.clock)

    def start(self) -> None:
        """Make the installation if it is new, connect the node, begin to reconcile."""
        self._process.install([Pool(LOCAL_POOL, self._provider.declaration.kind, host_platform())])
        self._link.serve(NodeReports(self.core))
        self._agent.start()
        self._process.begin()

    def http(self) -> uvicorn.Server:
        """The HTTP interface, not serving yet."""
        return self._process.http()

    def serve(self, listener: socket.socket) -> None:
        """Serve HTTP on a bound socket until a signal says to stop."""
        self._process.serve(listener, self.end_sessions)

    def end_sessions(self) -> None:
        """End every Session and wait until nothing of them is left on this host."""
        live = frozenset(SessionState) - FINAL
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
        self._agent.close()
        self._provider.close()
        self._process.close()


def slots(size: SandboxSize) -> int:
    """How many sandboxes of this size the host's memory holds, at least 8: most are idle most of the time."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_SLOTS, memory // size.memory)
