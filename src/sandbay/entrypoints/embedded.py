"""Core, one local node and the HTTP interface in one process, composed by hand.

SIGTERM stops the process and leaves sandboxes running: the next start adopts them. SIGINT (Ctrl-C, and what
`sandbay down` sends) ends every Session first.
"""

import json
import os
import platform
import signal
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.clock.system import SystemClock
from sandbay.adapters.ids.random import RandomIds
from sandbay.adapters.image_source.registry import RegistrySources
from sandbay.adapters.node_link.inprocess import InProcessLink
from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.adapters.uploads.folder import FolderUploads
from sandbay.adapters.vault.key_file import KeyFileVault
from sandbay.api.server import create_app
from sandbay.app.core import SYSTEM, Core
from sandbay.app.installation import ensure_installation, host_platform
from sandbay.app.nodes import NodeReports
from sandbay.app.reconcile import reconcile
from sandbay.app.sessions import end_session
from sandbay.domain.deployment import Pool, SandboxSize
from sandbay.domain.ids import NodeId
from sandbay.domain.session import FINAL, SessionState
from sandbay.engine.durable import write_file
from sandbay.engine.registry.trust import Trust
from sandbay.entrypoints.context_file import write_context
from sandbay.entrypoints.providers import adapters, open_provider
from sandbay.entrypoints.settings import Settings
from sandbay.entrypoints.sources import open_archive
from sandbay.node.agent import Agent, Identity
from sandbay.ports.store import Sessions

LOCAL_POOL = "local"
_LEAST_SLOTS = 8
_END_SECONDS = 30.0
_PASS_SECONDS = 1.0
_PASS_GAP = 0.02

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Identities:
    """Made at the first start and kept: who this installation and its local node are."""

    installation: str
    node: NodeId


def identities(home: Path) -> Identities:
    """Read them, or make them durable."""
    path = home / "identity.json"
    with suppress(FileNotFoundError):
        data = json.loads(path.read_text())
        return Identities(data["installation"], NodeId(data["node"]))
    ids = RandomIds()
    made = Identities(ids.new("installation"), NodeId(ids.new("node")))
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    write_file(path, json.dumps({"installation": made.installation, "node": made.node}).encode(), part)
    return made


class Embedded:
    """One installation in this process."""

    def __init__(self, settings: Settings) -> None:
        """Open everything; nothing runs yet."""
        settings.home.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._settings = settings
        who = identities(settings.home)
        migrate(settings.database)
        blobs = FolderBlobs(settings.home / "blobs")
        self._provider = open_provider(settings, blobs, who.installation)
        self._link = InProcessLink()
        uploads = FolderUploads(settings.home / "uploads", open_archive)
        self.core = Core(
            store=SqliteStore(settings.database),
            blobs=blobs,
            uploads=uploads,
            registries=RegistrySources(Trust(settings.plain_registries)),
            vault=KeyFileVault(settings.key),
            link=self._link,
            clock=SystemClock(),
            ids=RandomIds(),
            declarations={kind: adapter.declaration for kind, adapter in adapters().items()},
        )
        size = SandboxSize()
        identity = Identity(who.node, platform.node() or "local", self._provider.runtime, host_platform(), slots(size))
        self._agent = Agent(identity, self._provider, self._link, self.core.clock)
        self._closing = threading.Event()
        self._passes = threading.Thread(target=self._reconcile, name="sandbay-core", daemon=True)

    def start(self) -> None:
        """Make the installation if it is new, connect the node, begin to reconcile."""
        pool = Pool(LOCAL_POOL, self._provider.declaration.kind, host_platform())
        ensure_installation(self.core, [pool])
        write_context(self.core, self._settings)
        self._link.serve(NodeReports(self.core))
        self._agent.start()
        self._passes.start()

    def http(self) -> uvicorn.Server:
        """The HTTP interface, not serving yet."""
        config = uvicorn.Config(
            create_app(self.core),
            loop="asyncio",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        return uvicorn.Server(config)

    def serve(self, listener: socket.socket) -> None:
        """Serve HTTP on a bound socket until a signal says to stop."""
        server = self.http()
        thread = threading.Thread(target=server.run, args=([listener],), name="sandbay-http")
        received = _on_signals()
        thread.start()
        while thread.is_alive() and not received:
            thread.join(0.1)
        if signal.SIGINT in received:
            self.end_sessions()
        server.should_exit = True
        thread.join()

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
        self._closing.set()
        self.core.changed.set()
        if self._passes.is_alive():
            self._passes.join()
        self._agent.close()
        self._provider.close()
        self.core.store.close()

    def _reconcile(self) -> None:
        while not self._closing.is_set():
            seen = self.core.changed.version
            try:
                reconcile(self.core)
            except Exception:
                log.exception("a pass failed; the next one looks at the rows again")
            self.core.changed.wait(seen, _PASS_SECONDS)
            self._closing.wait(_PASS_GAP)


def slots(size: SandboxSize) -> int:
    """How many sandboxes of this size the host's memory holds, at least 8: most are idle most of the time."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_SLOTS, memory // size.memory)


def _on_signals() -> Sequence[int]:
    """The list that received signals are appended to."""
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: received.append(got))
    return received
