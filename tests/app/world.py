"""A whole installation in memory but for its SQLite file, whose process can be killed at any step and born again."""

import functools
import io
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.builders.logs import FolderBuildLogs
from sandbay.adapters.clock.system import SystemClock
from sandbay.adapters.ids.random import RandomIds
from sandbay.adapters.image_source.registry import RegistrySources
from sandbay.adapters.node_link.inprocess import InProcessLink
from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.adapters.uploads.folder import FolderUploads
from sandbay.adapters.vault.key_file import KeyFileVault
from sandbay.app.access import find_project
from sandbay.app.core import SYSTEM, Actor, Core, Settings
from sandbay.app.images import create_image
from sandbay.app.installation import ensure_installation, host_platform
from sandbay.app.nodes import NodeReports
from sandbay.app.publishing import Workshop
from sandbay.app.reconcile import reconcile
from sandbay.app.register import FromUpload, Registered, Registration, register
from sandbay.app.uploads import receive
from sandbay.domain.declaration import Declaration
from sandbay.domain.deployment import Pool
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import NodeId
from sandbay.domain.project import KeyKind
from sandbay.domain.reasons import Reason
from sandbay.engine.registry.pace import Pace, Patience
from sandbay.engine.registry.trust import Trust
from sandbay.entrypoints.sources import open_archive
from sandbay.node.agent import Agent, Identity
from sandbay.ports.store import CatalogOf, Store
from tests.fakes.memory_builder import MemoryBuilder
from tests.fakes.memory_provider import DECLARATION, MemoryProvider
from tests.fakes.memory_provider import World as NodeWorld
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file

NODE = NodeId("node_00000000000000000000")
SLOTS = 2


@functools.cache
def empty_database() -> bytes:
    """A migrated SQLite file: Alembic takes longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        migrate(path)
        return path.read_bytes()


class KilledError(BaseException):
    """The process is gone: no handler of the product's may catch it."""


class Life:
    """One process's life. It ends at the n-th durable write or provider step, before or after it took effect."""

    def __init__(self, steps: int | None = None, *, after: bool = False) -> None:
        self._left, self._after = steps, after
        self._lock = threading.Lock()
        self.dead = threading.Event()
        self.steps = 0

    def step(self, act: Callable[[], Any]) -> Any:
        """Do one step, unless this is the one that the process dies at."""
        with self._lock:
            if self.dead.is_set():
                raise KilledError
            self.steps += 1
            dies = self._left is not None and self.steps == self._left
            if dies and not self._after:
                self.dead.set()
                raise KilledError
        answer = act()
        if dies:
            self.dead.set()
            raise KilledError
        return answer

    def work(self, act: Callable[[], Any]) -> Any:
        """A step of the provider's is one like any other."""
        return self.step(act)

    def look(self, act: Callable[[], Any]) -> Any:
        """Reading needs a life, too."""
        if self.dead.is_set():
            raise KilledError
        return act()


class Stumble(Life):
    """A life in which one durable write fails, once, and everything goes on."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def step(self, act: Callable[[], Any]) -> Any:
        """Do one step, unless this is the one that fails."""
        with self._lock:
            self.steps += 1
            fails = self.steps == self._at
        if fails:
            raise StumbleError
        return act()

    def work(self, act: Callable[[], Any]) -> Any:
        """What a provider fails at is tried again minutes later, by design; that is another test's matter."""
        return act()


class StumbleError(Exception):
    """A disk or a database that was away for a moment."""


class MortalStore:
    """A store whose owner may die."""

    def __init__(self, store: Store, life: Life) -> None:
        self._store, self._life = store, life

    def read(self, query: Any) -> Any:
        return self._life.look(lambda: self._store.read(query))

    def apply(self, *changes: Any) -> None:
        self._life.step(lambda: self._store.apply(*changes))

    def close(self) -> None:
        return


class MortalProvider:
    """A provider whose owner may die between any two of its steps."""

    _STEPS = frozenset(
        {"prepare", "probe", "trial", "create", "set_network", "suspend", "drop_snapshot", "destroy", "remove"}
    )

    def __init__(self, provider: MemoryProvider, life: Life) -> None:
        self._provider, self._life = provider, life

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._provider, name)
        if not callable(real):
            return real
        guard = self._life.work if name in self._STEPS else self._life.look
        return lambda *args, **kw: guard(lambda: real(*args, **kw))


class World:
    """What survives a kill: the database, the blobs, the node's disk and its sandboxes."""

    def __init__(
        self,
        root: Path,
        settings: Settings | None = None,
        declaration: Declaration = DECLARATION,
        plain_registries: Sequence[str] = (),
        store: Store | None = None,
    ) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.settings, self.declaration = root, settings or Settings(), declaration
        if store is None and not (root / "db").exists():
            (root / "db").write_bytes(empty_database())
        self.store = store or SqliteStore(root / "db")
        self.blobs = FolderBlobs(root / "blobs")
        self.node = NodeWorld()
        self.builder = MemoryBuilder(root / "builds")
        self.plain_registries = plain_registries
        self.pace = Pace(Patience(connect=20, read=2, tries=3), sleep=lambda _: None)
        self.lives: list[Running] = []

    def born(self, life: Life | None = None) -> "Running":
        """A new process on what survived."""
        running = Running(self, life or Life())
        self.lives.append(running)
        return running

    def close(self) -> None:
        for running in self.lives:
            running.close()
        self.store.close()


class Running:
    """One process: Core, one agent, the reconciler."""

    def __init__(self, world: World, life: Life) -> None:
        self.world, self.life = world, life
        self.link = InProcessLink()
        provider = MemoryProvider(world.node, world.declaration)
        self.core = Core(
            store=MortalStore(world.store, life),
            blobs=world.blobs,
            uploads=FolderUploads(world.root / "uploads", open_archive),
            registries=RegistrySources(Trust(world.plain_registries), world.pace),
            vault=KeyFileVault(world.root / "key"),
            builder=world.builder,
            build_logs=FolderBuildLogs(world.root / "publishes"),
            link=self.link,
            clock=SystemClock(),
            ids=RandomIds(),
            declarations={world.declaration.kind: world.declaration},
            settings=world.settings,
        )
        self.workshop = Workshop(self.core)
        self._closing = threading.Event()
        identity = Identity(NODE, "n1", "memory", host_platform(), SLOTS)
        self.agent = Agent(identity, MortalProvider(provider, life), self.link, self.core.clock)
        self._passes = threading.Thread(target=self._reconcile, daemon=True)
        self._kind = provider.declaration.kind

    def start(self, *, node: bool = True) -> "Running":
        """Begin, with the node or as a Core alone; raises KilledError when it dies at a step of its start."""
        ensure_installation(self.core, [Pool("local", self._kind, host_platform())] if node else [])
        self.link.serve(NodeReports(self.core))
        if node:
            self.agent.start()
        self._passes.start()
        return self

    @property
    def actor(self) -> Actor:
        """Somebody of the project `default`."""
        return Actor("tester", KeyKind.PROJECT, find_project(self.core, "default").id)

    def register(self, name: str, content: str, **asked: Any) -> Registered:
        """An image whose /which says `content`; the image is made when it is new."""
        upload = receive(self.core, SYSTEM, [archive(self.world.root / f"layout-{name}-{content}", content)])
        if self.core.store.read(CatalogOf(frozenset({name}))).image(name) is None:
            create_image(self.core, SYSTEM, name, "", {})
        return register(self.core, SYSTEM, name, Registration(FromUpload(upload.id), **asked))

    def close(self) -> None:
        """Stop threads; a killed process has none that could do anything."""
        self._closing.set()
        self.core.changed.set()
        if self._passes.is_alive():
            self._passes.join()
        self.workshop.close()
        self.agent.close()

    def _reconcile(self) -> None:
        while not self._closing.is_set() and not self.life.dead.is_set():
            seen = self.core.changed.version
            try:
                reconcile(self.core)
                self.workshop.step()
            except KilledError:
                return
            except StumbleError:
                pass  # as in the product: the next pass looks at the rows again
            except RefusedError as error:
                if error.refusal.reason is not Reason.DATABASE_UNAVAILABLE:
                    raise
            self.core.changed.wait(seen, 0.05)


def archive(path: Path, content: str) -> bytes:
    """The tar of a layout with one tiny image."""
    if not path.exists():
        Layout(path).image([[file("which", content.encode())]], {"Cmd": ["/bin/true"]})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("oci-layout", "index.json", "blobs"):
            tar.add(path / name, arcname=name)
    return out.getvalue()


def eventually(what: Callable[[], object], *, within: float = 10) -> None:
    """Wait until it is true; the bound only says that it must end."""
    deadline = time.monotonic() + within
    while not what():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.005)


def states(values: Sequence[Any]) -> list[str]:
    """Sorted state names."""
    return sorted(v.value for v in values)
