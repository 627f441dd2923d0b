"""The port `Provider` for the layer store of this host and an OCI runtime."""

import contextlib
import errno
import signal
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from sandbay.adapters.providers.oci import cgroups as groups_of_host
from sandbay.adapters.providers.oci.allocations import AllocationFolders, AllocationRecord
from sandbay.adapters.providers.oci.calls import Call
from sandbay.adapters.providers.oci.claims import Claims
from sandbay.adapters.providers.oci.commands import Inside, run
from sandbay.adapters.providers.oci.declaration import declaration_here
from sandbay.adapters.providers.oci.diagnosis import Host, diagnose
from sandbay.adapters.providers.oci.enforcing import refuse_unenforceable
from sandbay.adapters.providers.oci.execs import Execs
from sandbay.adapters.providers.oci.files import SandboxFiles
from sandbay.adapters.providers.oci.freeing import Freer, stop_signal_of
from sandbay.adapters.providers.oci.groups import Groups
from sandbay.adapters.providers.oci.identity import HeldImage, booted_from, held_images, mounted_lowers, stood_on
from sandbay.adapters.providers.oci.network import SandboxNetwork
from sandbay.adapters.providers.oci.reaping import Reaping
from sandbay.adapters.providers.oci.resident import Resident
from sandbay.adapters.providers.oci.root import SandboxRoot
from sandbay.adapters.providers.oci.runtime import Runtime
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.adapters.providers.oci.snapshots import Snapshots
from sandbay.adapters.providers.oci.spawners import Spawners
from sandbay.adapters.providers.oci.starting import Places, Starter, image_user, network_unsupported, start_failed
from sandbay.adapters.providers.oci.trials import SandboxTrial
from sandbay.domain.allocation import Booted, Order, Presence
from sandbay.domain.command import Command
from sandbay.domain.declaration import Declaration, Network
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.disk import Disk
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId, SnapshotId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Variant
from sandbay.engine.store import LayerStore
from sandbay.ports.provider import Emit, Exit, Files, Finding, OnStart, Progress, SnapshotHeld

_PROBE, _NO_BASE = "prb_", -1  # before a range has been claimed
_FULL = (errno.ENOSPC, errno.EDQUOT)


class OciProvider:
    """Sandboxes of one installation on this host; `home` is durable, `run` volatile (mount points, runtime state)."""

    def __init__(
        self, home: Path, run: Path, layers: LayerStore, installation: str, settings: OciSettings | None = None
    ) -> None:
        """Look at the host. The first process on these folders ends commands that nobody waits for any more."""
        self._installation = installation
        self._owner = f"{installation} {home}"
        self._run = run
        self._layers = layers
        self._settings = settings = settings or OciSettings()
        # Searchable, because the user 0 of a sandbox has to reach its root below.
        run.mkdir(parents=True, exist_ok=True)
        run.chmod(0o711)
        self._cgroups = groups_of_host.find_layout(Path("/proc/self/mountinfo").read_text(), run / "cgroup2")
        state = Runtime(settings.runtime, run / "runtime")
        self._reaping = Reaping()
        self._spawners = Spawners(self._cgroups)
        self._execs = Execs(state, self._cgroups, self._reaping, self._spawners)
        resident = Resident(run, settings.spawner, settings.init)
        swap = (swap_file := groups_of_host.swap_file(self._cgroups)) is None or swap_file.exists()
        self._folders = AllocationFolders(home / "sandboxes", installation)
        self._snapshots = Snapshots(home / "snapshots")
        self._claims = Claims(self._owner, settings.block, layers, self._folders, self._snapshots)
        self._network = network = SandboxNetwork(
            self._owner, installation, run / "network", self._folders, settings.reach
        )
        self._starter = Starter(state, self._cgroups, self._execs, self._reaping, resident, swap, network)
        parent = groups_of_host.parent_path(installation)
        self._freer = Freer(
            state, self._cgroups, self._folders, parent, settings.grace, network, resident, self._spawners
        )
        self._host = Host(state, self._cgroups, resident, home, network)
        self._declaration = declaration_here(self._host.enforceable(), network=network.fault() is None)
        self._locks: weakref.WeakValueDictionary[str, threading.Lock] = weakref.WeakValueDictionary()
        self._busy: set[str] = set()
        self._images: dict[str, HeldImage] = {}
        self._own()

    @property
    def declaration(self) -> Declaration:
        """What this provider can do here."""
        return self._declaration

    @property
    def runtime(self) -> str:
        """The OCI runtime."""
        return self._host.runtime.program

    def close(self) -> None:
        """Let go. Sandboxes run on; if there are none, nothing of this provider stays on the host but its home."""
        self._spawners.close()
        self._reaping.close()
        if self._folders.owned:
            self._freer.tidy()
        self._folders.close()

    def uphold(self) -> None:
        """See to the rules of the sandboxes' network."""
        if self._folders.owned:
            self._network.uphold()

    def check(self) -> Sequence[Finding]:
        """One finding per thing that sandboxes need here."""
        return (*diagnose(self._host), *self._settings.explain())

    def prepare(self, variant: Variant, progress: Progress) -> None:
        """Fetch, verify, unpack, commit."""
        self._layers.prepare(variant, progress)

    def verify(self, variant: Variant, read: Callable[[int], None]) -> None:
        """Compare what is here with the installation's blobs."""
        self._layers.verify(variant.content_key, read)

    def mounted(self) -> frozenset[str]:
        """The short names of the layer trees that living sandboxes stand on."""
        return stood_on(pid for it in self._folders.all() if (pid := self._pid(it.allocation)) is not None)

    def probe(self, variant: Variant) -> None:
        """Start a real sandbox from the variant and destroy it."""
        with self.trial(variant, prove_only=True):
            return

    @contextlib.contextmanager
    def trial(self, variant: Variant, *, prove_only: bool = False) -> Iterator[SandboxTrial]:
        """A real sandbox from the variant, gone when the block ends. One at a time for each variant."""
        key = variant.content_key
        name = AllocationId(_PROBE + key.removeprefix("sha256:")[:20])
        self._require_own()
        with self._alone(name):
            self._freer.free(self._places(name))
            wanted = AllocationRecord(self._installation, name, "probe", key, _NO_BASE, SandboxSize())
            record, image = self._claims.claim(wanted)
            self._start(record, image, prove_only=prove_only)
            self._images[name] = image
            try:
                root = partial(self._root, name)
                yield SandboxTrial(image.config, root, lambda command, emit: self.exec(name, command, emit=emit))
            finally:
                self._images.pop(name, None)
                self._claims.free(self._freer, self._places(name))

    def held(self) -> Sequence[ContentKey]:
        """What is here whole."""
        return self._layers.held()

    def disk(self) -> Disk:
        """The layer store's bytes."""
        return self._layers.disk()

    def create(self, order: Order) -> Booted:
        """Start an allocation, or find it running."""
        refuse_unenforceable(order, self._declaration)
        self._require_own()
        with self._alone(order.allocation):
            if self._folders.is_foreign(order.allocation):
                raise RefusedError(Reason.IN_USE, "another installation has an allocation of this name here")
            known = self._folders.read(order.allocation)
            if known is not None and self._folders.has_started(order.allocation):
                if self._pid(order.allocation) is None:
                    raise start_failed("the allocation has run before and has ended")
                return self.booted(order.allocation)
            self._freer.free(self._places(order.allocation))
            record, image = self._claims.claim(self._wanted(order), order.snapshot)
            self._start(record, image, order.snapshot)
            self._folders.mark_started(order.allocation)
            self._images[order.allocation] = image
            return self.booted(order.allocation)

    def set_network(self, allocation: AllocationId, mode: Network) -> None:
        """Give a running sandbox this one of its order's networks and no other."""
        record = self._record(allocation)
        if mode not in record.networks:
            raise network_unsupported("its order does not name this network mode", mode, record.networks)
        self._require_own()
        with self._alone(allocation):
            pid = self._running(allocation)
            if not record.networked:
                return
            try:
                self._network.change(record, mode, pid, self._places(allocation).bundle)
            except OSError as error:
                self._running(allocation)
                says = error.strerror or ""
                raise start_failed("the sandbox's network could not be changed", says=says) from error

    def booted(self, allocation: AllocationId) -> Booted:
        """The identity read back from the running thing."""
        record = self._record(allocation)
        pid = self._running(allocation)
        try:
            lowers = mounted_lowers(Path(f"/proc/{pid}/mountinfo").read_text())
        except (FileNotFoundError, ProcessLookupError) as error:
            raise _not_running() from error
        held = chain(filter(None, [self._images.get(allocation)]), held_images(self._layers))
        found = None if lowers is None else booted_from(lowers, held, record.key)
        return Booted({} if found is None else dict(found.artifacts), pid, self._host.runtime.program)

    def presence(self, allocation: AllocationId) -> Presence:
        """What is there of it now."""
        try:
            if allocation in self._busy:
                return Presence.UNKNOWN
            if self._pid(allocation) is not None and self._folders.has_started(allocation):
                return Presence.RUNNING
            return Presence.EXITED if allocation in self.list_allocations() else Presence.ABSENT
        except (OSError, ValueError):
            return Presence.UNKNOWN

    def exec(
        self,
        allocation: AllocationId,
        command: Command,
        *,
        stdin: Iterable[bytes] = (),
        emit: Emit,
        cancel: threading.Event | None = None,
        on_start: OnStart | None = None,
    ) -> Exit:
        """Run a command to its end, in the calling thread."""
        record = self._record(allocation)
        call = Call(emit, stdin, command.timeout, cancel, command.terminal, on_start)
        with self._root(allocation) as root:
            inside = Inside(self._execs, self._places(allocation).sandbox, root, self._image(record).config, record.env)
            try:
                return run(inside, command, call)
            except FileNotFoundError as error:
                raise _not_running() from error

    def files(self, allocation: AllocationId) -> Files:
        """The sandbox's files."""
        config = self._image(self._record(allocation)).config
        with self._root(allocation) as root:
            user = image_user(root, config)
        return SandboxFiles(lambda: self._root(allocation), user, self._settings.file_limits)

    def destroy(self, allocation: AllocationId) -> None:
        """End it and free everything of it."""
        try:
            places = self._places(allocation)
        except ValueError:
            return
        self._require_own()
        with self._alone(allocation):
            if self._folders.is_foreign(allocation):
                return
            if (record := self._folders.read(allocation)) is not None:
                self._layers.touch(record.key)
            self._claims.free(self._freer, places, self._stop_signal(allocation))
            self._images.pop(allocation, None)

    def suspend(self, allocation: AllocationId, snapshot: SnapshotId) -> SnapshotHeld:
        """Stop it and keep what it has written under this id."""
        self._require_own()
        with self._alone(allocation):
            if (known := self._snapshots.held(snapshot)) is not None:
                return known
            record = self._record(allocation)
            if not self._folders.has_started(allocation):
                raise _not_running()
            self._layers.touch(record.key)
            held = self._claims.keep(self._freer, self._places(allocation), snapshot, self._stop_signal(allocation))
            self._images.pop(allocation, None)
            return held

    def drop_snapshot(self, snapshot: SnapshotId) -> None:
        """Let go of kept state."""
        self._require_own()
        self._snapshots.drop(snapshot)

    def list_allocations(self) -> Sequence[AllocationId]:
        """What of this installation is here; probes under way are nobody's business."""
        parent = groups_of_host.below(self._cgroups.members, groups_of_host.parent_path(self._installation))
        grouped = {path.name for path in parent.iterdir() if path.is_dir()} if parent.is_dir() else set()
        names = {record.allocation for record in self._folders.all()} | grouped
        return [AllocationId(name) for name in sorted(names) if not (name.startswith(_PROBE) and name in self._busy)]

    def remove(self, key: ContentKey) -> None:
        """Drop the variant's bytes that nothing else shares."""
        self._claims.drop(key)

    def _own(self) -> bool:
        """Whether these folders are this process's; when they become it, what an earlier one left is seen to."""
        became = self._folders.own()
        if became:
            self._snapshots.sweep()
            self._adopt()
        return became is not None

    def _require_own(self) -> None:
        if not self._own():
            raise RefusedError(Reason.HOST_UNFIT, "another process runs sandboxes in this folder")

    def _adopt(self) -> None:
        for record in self._folders.all():
            if record.allocation.startswith(_PROBE):
                self._claims.free(self._freer, self._places(record.allocation))
            else:
                self._execs.abandon(self._places(record.allocation).sandbox)
        with self._claims.lock:  # it may have ended between the last record and what all of them share
            self._freer.drop_shared()

    def _wanted(self, order: Order) -> AllocationRecord:
        key, env = order.frozen.content_key, dict(order.env or {})
        names = (self._installation, order.allocation, order.session)
        return AllocationRecord(*names, key, _NO_BASE, order.size, env, order.networks)

    def _start(
        self,
        record: AllocationRecord,
        image: HeldImage,
        snapshot: SnapshotId | None = None,
        *,
        prove_only: bool = False,
    ) -> None:
        places = self._places(record.allocation)
        try:
            if snapshot is not None:
                self._snapshots.copy(snapshot, places.durable)
            self._starter.start(record, image, places, prove_only=prove_only)
        except OSError as error:
            self._claims.free(self._freer, places)
            self._layers.verified(record.key)  # or it was found damaged since it was claimed
            if error.errno in _FULL:
                raise RefusedError(Reason.NO_SPACE, "the disk is full") from error
            raise start_failed("the host did not do a step of the start", says=error.strerror or "") from error
        except BaseException:
            self._claims.free(self._freer, places)
            raise

    def _places(self, name: str) -> Places:
        return Places.of(name, self._folders.folder(name), self._run, self._installation)

    def _record(self, allocation: str) -> AllocationRecord:
        try:
            record = self._folders.read(allocation)
        except ValueError:
            record = None
        if record is None:
            raise _not_running()
        return record

    def _image(self, record: AllocationRecord) -> HeldImage:
        """The held variant of an allocation, proved once per process. Refuses with `content_lost`."""
        image = self._images.get(record.allocation)
        if image is None:
            self._images[record.allocation] = image = self._layers.verified(record.key)
        return image

    def _pid(self, allocation: str) -> int | None:
        return Groups(self._cgroups, self._places(allocation).sandbox.group).init_pid()

    def _running(self, allocation: str) -> int:
        pid = self._pid(allocation)
        if pid is None:
            raise _not_running()
        return pid

    def _root(self, allocation: str) -> SandboxRoot:
        record = self._record(allocation)
        try:
            return SandboxRoot(Path(f"/proc/{self._running(allocation)}/root"), record.base)
        except (FileNotFoundError, ProcessLookupError) as error:
            raise _not_running() from error

    def _stop_signal(self, allocation: str) -> signal.Signals:
        image = self._images.get(allocation)
        if image is None and (record := self._folders.read(allocation)) is not None:
            image = self._layers.record(record.key)
        return stop_signal_of(image.config.stop_signal if image else "")

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """One start or end of an allocation at a time."""
        with self._claims.lock:
            lock = self._locks.get(name) or self._locks.setdefault(name, threading.Lock())
        with lock:
            self._busy.add(name)
            try:
                yield
            finally:
                self._busy.discard(name)


def _not_running() -> RefusedError:
    return RefusedError(Reason.NOT_RUNNING, "the sandbox is not running")
