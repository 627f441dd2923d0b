"""Core and its HTTP interface in this process: what `core` serves alone and `up` with a local node."""

import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import structlog
import uvicorn

from sandbay.adapters.builders.logs import FolderBuildLogs
from sandbay.adapters.clock.system import SystemClock
from sandbay.adapters.ids.random import RandomIds
from sandbay.adapters.image_source.registry import RegistrySources
from sandbay.adapters.node_link.inprocess import InProcessLink
from sandbay.adapters.store.database import open_store
from sandbay.adapters.uploads.folder import FolderUploads
from sandbay.adapters.vault.key_file import KeyFileVault
from sandbay.api import exec_socket
from sandbay.api.server import create_app
from sandbay.app.core import Core
from sandbay.app.core import Settings as Bounds
from sandbay.app.installation import ensure_installation
from sandbay.app.outlive import outlive_sessions
from sandbay.app.publishing import Workshop
from sandbay.app.reconcile import reconcile
from sandbay.app.registries import credentials_for
from sandbay.domain.deployment import Pool
from sandbay.engine.limits import Limits
from sandbay.engine.registry.pace import Pace
from sandbay.engine.registry.trust import Trust
from sandbay.entrypoints.blobs import open_blobs
from sandbay.entrypoints.builders import open_builder
from sandbay.entrypoints.context_file import write_context
from sandbay.entrypoints.providers import adapters
from sandbay.entrypoints.settings import Settings
from sandbay.entrypoints.sources import open_archive

_PASS_SECONDS = 1.0
_PASS_GAP = 0.02
_LOOK_SHARE = 20
"""A look at all that live takes no more than one part of so many of the time."""


log = structlog.get_logger()


class CoreProcess:
    """One Core. Others may serve the same database at the same time.

    Uploads lie in its own home, and so do blobs where no registry holds them.
    """

    def __init__(self, settings: Settings, link: InProcessLink | None = None) -> None:
        """Migrate the database and open everything; nothing runs yet."""
        settings.home.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._settings = settings
        limits = Limits(**settings.image_limits)
        uploads = FolderUploads(settings.home / "uploads", partial(open_archive, limits=limits))
        store, vault = open_store(settings.database_url or settings.database), KeyFileVault(settings.key)
        pace = Pace()  # one for all, so that a registry's limit holds for sources and for our own store in it
        self._open = ExitStack()
        self._open.callback(store.close)
        self.core = Core(
            store=store,
            blobs=open_blobs(settings, partial(credentials_for, store, vault), pace, self._open),
            uploads=uploads,
            registries=RegistrySources(Trust(settings.plain_registries), pace, limits),
            vault=vault,
            builder=open_builder(settings),
            build_logs=FolderBuildLogs(settings.home / "publishes"),
            link=link or InProcessLink(),
            clock=SystemClock(),
            ids=RandomIds(),
            declarations={kind: adapter.declaration for kind, adapter in adapters().items()},
            settings=_bounds(settings),
        )
        self._workshop = Workshop(self.core)
        self._closing = threading.Event()
        self._passes = threading.Thread(target=self._reconcile, name="sandbay-core", daemon=True)

    def install(self, pools: Sequence[Pool] = ()) -> None:
        """Make the installation if it is new, and keys for this host."""
        ensure_installation(self.core, pools)
        write_context(self.core, self._settings)

    def start(self) -> None:
        """Make the installation if it is new, and begin to reconcile."""
        self.install()
        self.begin()

    def begin(self) -> None:
        """Begin to reconcile."""
        self._passes.start()

    def http(self) -> uvicorn.Server:
        """The HTTP interface, not serving yet."""
        config = uvicorn.Config(
            create_app(self.core),
            loop="asyncio",
            **exec_socket.SERVED,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        return uvicorn.Server(config)

    def serve(self, listener: socket.socket, interrupted: Callable[[], None] = lambda: None) -> None:
        """Serve HTTP on a bound socket until a signal says to stop; SIGINT calls `interrupted` first."""
        server = self.http()
        thread = threading.Thread(target=server.run, args=([listener],), name="sandbay-http")
        received = _on_signals()
        thread.start()
        while thread.is_alive() and not received:
            thread.join(0.1)
        if signal.SIGINT in received:
            interrupted()
        self.core.changed.close()
        server.should_exit = True
        thread.join()

    def rest(self) -> None:
        """Reconcile no more."""
        self._closing.set()
        self.core.changed.set()
        if self._passes.is_alive():
            self._passes.join()
        self._workshop.close()

    def close(self) -> None:
        """Stop, and close the database and what else is open."""
        self.rest()
        self._open.close()

    def _reconcile(self) -> None:
        look_at = 0.0
        while not self._closing.is_set():
            seen = self.core.changed.version
            try:
                reconcile(self.core)
                if (began := time.monotonic()) >= look_at:
                    outlive_sessions(self.core)
                    took = time.monotonic() - began
                    look_at = began + max(_PASS_SECONDS, took * _LOOK_SHARE)
                self._workshop.step()
            except Exception:
                log.exception("a pass failed; the next one looks at the rows again")
            self.core.changed.wait(seen, _PASS_SECONDS)
            self._closing.wait(_PASS_GAP)


def _bounds(settings: Settings) -> Bounds:
    rate = settings.requests_per_second
    bounds = Bounds(life=settings.life)
    if settings.snapshot_retention is not None:
        bounds = replace(bounds, snapshot_retention=settings.snapshot_retention)
    return bounds if rate is None else replace(bounds, requests_per_second=rate)


def _on_signals() -> Sequence[int]:
    """The list that received signals are appended to."""
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: received.append(got))
    return received
