"""What every use case is handed: the ports, the settings, and who is asking."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from sandbay.app.metrics import Metrics
from sandbay.app.uses import Uses
from sandbay.domain.declaration import Declaration
from sandbay.domain.ids import NodeId, ProjectId, ReleaseId, SessionId
from sandbay.domain.life import Life
from sandbay.domain.project import KeyKind
from sandbay.domain.readiness import Readiness
from sandbay.domain.release import ContentKey, Fault
from sandbay.domain.scope import UNCONFINED, Confinement
from sandbay.domain.setup import SETUP_SECONDS, SetupProgress
from sandbay.ports.blobs import Blobs
from sandbay.ports.builder import Builder, BuildLogs
from sandbay.ports.clock import Clock
from sandbay.ports.ids import Ids
from sandbay.ports.node_link import NodeLink
from sandbay.ports.registries import Registries
from sandbay.ports.store import Store
from sandbay.ports.uploads import Uploads
from sandbay.ports.vault import Vault


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. `project` is None for the administrator; `confinement` is what the key is held to within it."""

    principal: str
    kind: KeyKind
    project: ProjectId | None = None
    request_id: str | None = None
    confinement: Confinement = UNCONFINED


SYSTEM = Actor("system", KeyKind.ADMINISTRATOR)
"""Who acts when nobody asked: the reconciler."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds of an installation; each is told in the refusal that it causes. Sizes in bytes."""

    images: int = 1_000
    releases_per_image: int = 50
    templates: int = 1_000
    """Templates of one project."""
    setup_seconds: float = SETUP_SECONDS
    """How long all steps of a Session's initialisation may take together."""
    snapshot_retention: timedelta = timedelta(days=30)
    """How long the state of a suspended Session is kept; with it the Session ends."""
    upload_bytes: int = 64 * 1024**3
    upload_life: timedelta = timedelta(hours=24)
    builds: int = 2
    """How many images are built at once."""
    proof_wait: timedelta = timedelta(minutes=30)
    """How long a publish waits for a node to prove its release."""
    life: Life = field(default_factory=Life)
    """What Sessions have that ask for no other; none has more."""
    start_wait: float = 60.0
    """How long a create call waits for the Session to run before it answers `starting`, in seconds."""
    requests_per_second: float = 500.0
    """Of one key, when they go on; 0 means no limit. `request_burst` may come at once."""
    request_burst: int = 2_000
    bad_keys_per_second: float = 1.0
    """Attempts without a good key from one address, when they go on; `bad_key_burst` may come at once."""
    bad_key_burst: int = 100


class Signal:
    """Wakes whoever waits for something to change. It carries no facts: those are read from the store."""

    def __init__(self) -> None:
        """Start at version 0."""
        self._condition = threading.Condition()
        self._version = 0
        self._listeners: set[Callable[[], object]] = set()
        self.closed = False

    def close(self) -> None:
        """Tell whoever follows changes that this Core stops."""
        self.closed = True
        self.set()

    @property
    def version(self) -> int:
        """Rises with every change."""
        return self._version

    def set(self) -> None:
        """Something changed."""
        with self._condition:
            self._version += 1
            self._condition.notify_all()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    @contextmanager
    def told(self, listener: Callable[[], object]) -> Iterator[None]:
        """Within the block each change calls `listener`, in whatever thread made it; it must return at once."""
        with self._condition:
            self._listeners.add(listener)
        try:
            yield
        finally:
            with self._condition:
                self._listeners.discard(listener)

    def wait(self, seen: int, timeout: float) -> int:
        """Return when the version is no longer `seen`, or after `timeout` seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._version != seen, timeout)
            return self._version


@dataclass(frozen=True)
class Core:
    """One Core: its ports, and the little that lives in memory only because losing it costs nothing."""

    store: Store
    blobs: Blobs
    uploads: Uploads
    registries: Registries
    vault: Vault
    builder: Builder
    build_logs: BuildLogs
    link: NodeLink
    clock: Clock
    ids: Ids
    declarations: Mapping[str, Declaration]
    settings: Settings = field(default_factory=Settings)
    changed: Signal = field(default_factory=Signal)
    metrics: Metrics = field(default_factory=Metrics)
    progress: dict[tuple[NodeId, ContentKey], Readiness] = field(default_factory=dict)
    """Bytes of prepares under way, as last reported; the states themselves are rows."""
    check_faults: dict[tuple[ReleaseId, ContentKey], tuple[NodeId, Fault]] = field(default_factory=dict)
    """Why the last try of a check that is due saw nothing, and on which node."""
    setups: dict[SessionId, SetupProgress] = field(default_factory=dict)
    """How far Sessions are initialised, as last reported."""
    uses: Uses = field(default_factory=Uses)
    """Which Sessions are used; rows hear of it before it matters to another Core."""

    @cached_property
    def since(self) -> datetime:
        """Since when this Core is there."""
        return self.clock.now()
