"""A provider without processes. It passes the provider suite, so tests of the layers above may believe it.

    world = World()                          # what survives kill -9: the node's disk and what runs on it
    provider = MemoryProvider(world)         # a second one on the same world is the node after a restart
    world.knobs.fail_prepare(Reason.NO_SPACE, times=2)
    world.knobs.boots = {"image_manifest_digest": "sha256:…"}      # another image boots
    with world.knobs.holding_prepare(): …    # prepares wait until the block ends
    world.knobs.crash_at = "create:started"  # the next pass over that step raises CrashError

Any variant can be prepared: unless `world.contents` says what is in it, it is a small system with a shell,
root and agent (1000), and its own content key in /etc/image.
"""

import contextlib
import copy
import itertools
import posixpath
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from signal import Signals
from typing import TypeVar

from sandbay.domain.allocation import Booted, Order, Presence
from sandbay.domain.command import (
    WORKSPACE,
    Command,
    TerminalSize,
    User,
    argv_of,
    environment,
    find_user,
    workdir_of,
)
from sandbay.domain.declaration import Ability, ArtifactRule, Declaration, Isolation, Mode, Network, Resource
from sandbay.domain.disk import Disk, HeldVariant, Marks, coming
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import AllocationId, SnapshotId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST, ContentKey, ImageConfig, Variant
from sandbay.ports.provider import (
    Emit,
    Exit,
    FileKind,
    Finding,
    OnStart,
    Phase,
    PrepareProgress,
    Progress,
    SnapshotHeld,
    Stream,
)
from tests.fakes.memory_files import Entry, MemoryFiles, folder
from tests.fakes.memory_programs import MARK, PROGRAMS, KilledError, Process, run

DECLARATION = Declaration(
    kind="memory",
    mode=Mode.NODE,
    artifacts={name: ArtifactRule(r"sha256:[0-9a-f]{64}") for name in (MANIFEST_DIGEST, IMAGE_ID)},
    platforms=(Platform.of("linux", "amd64"), Platform.of("linux", "arm64")),
    layer_formats=frozenset({"gzip", "zstd", "plain"}),
    max_layers=127,
    abilities=frozenset({Ability.EXEC, Ability.PTY, Ability.FILES, Ability.SUSPEND}),
    networks=frozenset({Network.DISABLED}),  # tests of what has a network say so: NETWORKED
    enforces=frozenset({Resource.CPUS, Resource.MEMORY, Resource.PIDS}),
    isolation=Isolation.NAMESPACES,
)
NETWORKED = replace(DECLARATION, networks=frozenset({Network.DISABLED, Network.ENABLED}))
STEPS = (
    *("prepare:fetched", "prepare:unpacked", "prepare:committed"),
    *("create:recorded", "create:started", "destroy:killed", "remove:unlisted"),
)
PASSWD = b"root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n"
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)
T = TypeVar("T")
GROUP = b"root:x:0:\nagent:x:1000:\n"


class CrashError(Exception):
    """Where kill -9 would have struck: nothing above a provider expects this."""


@dataclass
class Knobs:
    """What a test may turn. `crash_at` is one of STEPS and strikes once."""

    boots: Mapping[str, str] | None = None
    crash_at: str | None = None
    prepare_began: threading.Event = field(default_factory=threading.Event)
    failures: list[Refusal] = field(default_factory=list)
    trial_faults: list[Reason] = field(default_factory=list)
    trials: list[ContentKey] = field(default_factory=list)
    _gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._gate.set()

    def fail_prepare(self, reason: Reason, *, times: int = 1, digest: str | None = None) -> None:
        """Let the next prepares fail; `digest`: on this blob."""
        details = {} if digest is None else {"digest": digest}
        self.failures += [Refusal(reason, "as the test wants it", details=details)] * times

    @contextlib.contextmanager
    def holding_prepare(self) -> Iterator[None]:
        """Prepares that begin inside the block wait for its end; `prepare_began` tells of the first."""
        self.prepare_began.clear()
        self._gate.clear()
        try:
            yield
        finally:
            self._gate.set()

    def pass_gate(self) -> None:
        self.prepare_began.set()
        self._gate.wait()

    def step(self, name: str) -> None:
        if self.crash_at == name:
            self.crash_at = None
            raise CrashError(name)


@dataclass
class Sandbox:
    """One allocation. It is recorded before it runs, as a real one is."""

    order: Order
    variant: Variant
    booted: Booted
    files: MemoryFiles
    started: bool = False
    gone: threading.Event = field(default_factory=threading.Event)


@dataclass
class World:
    """The durable part of a node. `unpacked` counts the real work done per variant.

    `lacks`: network modes that its host cannot enforce, whatever its provider declares elsewhere. `budget`: bytes for
    images, with marks at nine tenths and at seven; without one nothing is ever let go. A plain layer takes its size.
    """

    contents: dict[ContentKey, Mapping[str, Entry]] = field(default_factory=dict)
    damaged: set[ContentKey] = field(default_factory=set)
    rotten: set[ContentKey] = field(default_factory=set)
    probed: set[ContentKey] = field(default_factory=set)
    lacks: frozenset[Network] = frozenset()
    budget: int | None = None
    used: dict[ContentKey, datetime] = field(default_factory=dict)
    held: dict[ContentKey, Variant] = field(default_factory=dict)
    unpacked: Counter[ContentKey] = field(default_factory=Counter)
    snapshots: dict[SnapshotId, tuple[ContentKey, MemoryFiles]] = field(default_factory=dict)
    sandboxes: dict[AllocationId, Sandbox] = field(default_factory=dict)
    knobs: Knobs = field(default_factory=Knobs)
    pids: Iterator[int] = field(default_factory=lambda: itertools.count(1000))


class Steered:
    """The port's `Steering` of one program."""

    def __init__(self, size: TerminalSize | None) -> None:
        self.size, self.stop, self.number = size, threading.Event(), Signals.SIGKILL

    def resize(self, size: TerminalSize) -> None:
        self.size = size if self.size is not None else None

    def signal(self, number: Signals) -> None:
        self.number = number
        self.stop.set()


def _shown(emit: Emit) -> Emit:
    """As a terminal shows it."""
    return lambda _, data: emit(Stream.STDOUT, data.replace(b"\n", b"\r\n"))


class MemoryProvider:
    """The port `Provider` over a World."""

    def __init__(self, world: World, declaration: Declaration = DECLARATION) -> None:
        self.world = world
        self._declaration = declaration
        self._lock = threading.RLock()
        self._preparing: dict[ContentKey, threading.Lock] = {}

    @property
    def declaration(self) -> Declaration:
        return replace(self._declaration, networks=self._declaration.networks - self.world.lacks)

    @property
    def runtime(self) -> str:
        return "memory"

    def uphold(self) -> None:
        return

    def close(self) -> None:
        return

    def check(self) -> Sequence[Finding]:
        return [Finding("memory", ok=True, says="always here")]

    def prepare(self, variant: Variant, progress: Progress) -> None:
        key, knobs = variant.content_key, self.world.knobs
        with self._lock:
            turn = self._preparing.setdefault(key, threading.Lock())
        with turn:
            if key in self.world.held:
                return
            knobs.pass_gate()
            if knobs.failures:
                raise RefusedError.of(knobs.failures.pop(0))
            self._refuse_unless_room(variant)
            if key in self.world.damaged:
                raise RefusedError(Reason.DIGEST_MISMATCH, "the bytes do not have their digest")
            progress(PrepareProgress(Phase.FETCH, variant.size, variant.size))
            knobs.step("prepare:fetched")
            self.world.unpacked[key] += 1
            progress(PrepareProgress(Phase.UNPACK, variant.size, variant.size))
            knobs.step("prepare:unpacked")
            progress(PrepareProgress(Phase.COMMIT, variant.size, variant.size))
            with self._lock:
                self.world.held[key] = variant
                self.world.used[key] = datetime.now(UTC)
            knobs.step("prepare:committed")

    def verify(self, variant: Variant, read: Callable[[int], None]) -> None:
        key = variant.content_key
        if key not in self.world.held:
            raise _absent(key)
        read(variant.size)
        if key in self.world.rotten:
            self.world.rotten.discard(key)
            del self.world.held[key]
            raise RefusedError(Reason.CONTENT_LOST, "a byte has changed")

    def probe(self, variant: Variant) -> None:
        if variant.content_key not in self.world.held:
            raise _absent(variant.content_key)
        self.world.probed.add(variant.content_key)

    @contextlib.contextmanager
    def trial(self, variant: Variant) -> Iterator["MemoryTrial"]:
        if variant.content_key not in self.world.held:
            raise _absent(variant.content_key)
        files = self._root_of(variant)
        user = _said(_user(files, variant.config.user))
        workdir = posixpath.normpath(posixpath.join(WORKSPACE, workdir_of(variant.config, Command())))
        gone = threading.Event()
        self.world.knobs.trials.append(variant.content_key)
        if self.world.knobs.trial_faults:
            raise RefusedError(self.world.knobs.trial_faults.pop(0), "as the test wants it")
        try:
            yield MemoryTrial(variant.config, files, user, workdir, gone)
        finally:
            gone.set()

    def held(self) -> Sequence[ContentKey]:
        with self._lock:
            return sorted(self.world.held)

    def disk(self) -> Disk | None:
        with self._lock:
            if self.world.budget is None:
                return None
            held = dict(self.world.held)
        parts = {layer.diff_id: layer.size for it in held.values() for layer in it.layers}
        variants = tuple(
            HeldVariant(key, frozenset(layer.diff_id for layer in it.layers), self.world.used.get(key, _NEVER))
            for key, it in held.items()
        )
        budget = self.world.budget
        return Disk(parts, variants, Marks(budget, budget * 9 // 10, budget * 7 // 10), budget)

    def _refuse_unless_room(self, variant: Variant) -> None:
        disk = self.disk()
        if disk is not None and disk.used + sum(coming(variant.layers).least.values()) > disk.marks.budget:
            raise RefusedError(Reason.NO_SPACE, "the budget does not hold it")

    def create(self, order: Order) -> Booted:
        with self._lock:
            self.world.used[order.frozen.content_key] = datetime.now(UTC)
            there = self.world.sandboxes.get(order.allocation)
            if there is not None and there.started:
                if there.gone.is_set():
                    raise RefusedError(Reason.START_FAILED, "the allocation has run before and has ended")
                return there.booted
            variant = self.world.held.get(order.frozen.content_key)
            if variant is None:
                raise _absent(order.frozen.content_key)
            if not set(order.networks) <= self.declaration.networks:
                raise RefusedError(Reason.NETWORK_UNSUPPORTED, "this network mode cannot be enforced", param="network")
            artifacts = {name: artifact.value for name, artifact in variant.artifacts.items()}
            booted = Booted(self.world.knobs.boots or artifacts, next(self.world.pids), "memory")
            sandbox = Sandbox(order, variant, booted, self._files_for(order, variant))
            self.world.sandboxes[order.allocation] = sandbox
            self.world.knobs.step("create:recorded")
            _place_network(sandbox, order.networks[0])
            sandbox.started = True
            self.world.knobs.step("create:started")
            return booted

    def set_network(self, allocation: AllocationId, mode: Network) -> None:
        sandbox = self._running(allocation)
        if mode not in sandbox.order.networks:
            raise RefusedError(Reason.NETWORK_UNSUPPORTED, "its order does not name this network mode", param="network")
        _place_network(sandbox, mode)

    def booted(self, allocation: AllocationId) -> Booted:
        return self._running(allocation).booted

    def presence(self, allocation: AllocationId) -> Presence:
        with self._lock:
            sandbox = self.world.sandboxes.get(allocation)
            if sandbox is None:
                return Presence.ABSENT
            return Presence.RUNNING if sandbox.started and not sandbox.gone.is_set() else Presence.EXITED

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
        sandbox = self._running(allocation)
        stops = (sandbox.gone, cancel or threading.Event())
        env = sandbox.order.env or {}
        return _exec(sandbox.variant.config, sandbox.files, command, env, stdin, emit, stops, on_start)

    def files(self, allocation: AllocationId) -> MemoryFiles:
        return self._running(allocation).files

    def destroy(self, allocation: AllocationId) -> None:
        with self._lock:
            sandbox = self.world.sandboxes.get(allocation)
            if sandbox is not None:
                sandbox.gone.set()
                self.world.knobs.step("destroy:killed")
                del self.world.sandboxes[allocation]

    def suspend(self, allocation: AllocationId, snapshot: SnapshotId) -> SnapshotHeld:
        with self._lock:
            if snapshot not in self.world.snapshots:
                sandbox = self.world.sandboxes.get(allocation)
                if sandbox is None:
                    raise RefusedError(Reason.NOT_RUNNING, "there is no such running sandbox")
                sandbox.gone.set()
                self.world.snapshots[snapshot] = (sandbox.variant.content_key, sandbox.files)
            self.world.sandboxes.pop(allocation, None)
            return SnapshotHeld(snapshot, 1)

    def drop_snapshot(self, snapshot: SnapshotId) -> None:
        with self._lock:
            self.world.snapshots.pop(snapshot, None)

    def list_allocations(self) -> Sequence[AllocationId]:
        with self._lock:
            return sorted(self.world.sandboxes)

    def remove(self, key: ContentKey) -> None:
        with self._lock:
            users = [a for a, sandbox in self.world.sandboxes.items() if sandbox.variant.content_key == key]
            if users:
                raise RefusedError(Reason.IN_USE, "an allocation runs from it", details={"allocations": users})
            if any(kept == key for kept, _ in self.world.snapshots.values()):
                raise RefusedError(Reason.IN_USE, "kept state stands on it")
            self.world.held.pop(key, None)
            self.world.knobs.step("remove:unlisted")

    def _running(self, allocation: AllocationId) -> Sandbox:
        with self._lock:
            sandbox = self.world.sandboxes.get(allocation)
            if sandbox is None or not sandbox.started or sandbox.gone.is_set():
                raise RefusedError(Reason.NOT_RUNNING, "there is no such running sandbox")
            return sandbox

    def _files_for(self, order: Order, variant: Variant) -> MemoryFiles:
        if order.snapshot is None:
            return self._root_of(variant)
        key, files = self.world.snapshots.get(order.snapshot, (None, MemoryFiles()))
        if key != variant.content_key:
            raise RefusedError(Reason.START_FAILED, "there is no such snapshot of this release")
        return MemoryFiles(files.uid, files.gid, copy.deepcopy(files.root))

    def _root_of(self, variant: Variant) -> MemoryFiles:
        files = MemoryFiles()
        contents = self.world.contents.get(variant.content_key)
        for path, entry in (contents or small_system(variant.content_key)).items():
            files.make_folder("/" + path.rpartition("/")[0])
            _place(files, path, copy.deepcopy(entry))
        user = _user(files, variant.config.user)
        if isinstance(user, User):
            files.uid, files.gid = user.uid, user.gid
        _place(files, WORKSPACE.lstrip("/"), folder(0o755, files.uid, files.gid))
        return files


@dataclass(frozen=True)
class MemoryTrial:
    """The port's `Trial`."""

    config: ImageConfig
    root: MemoryFiles
    user: User
    workdir: str
    gone: threading.Event

    def find(self, program: str) -> str | None:
        folders = environment(self.config, self.user)["PATH"].split(":")
        paths = [posixpath.join(self.workdir, folder, program) for folder in folders]
        return next((path for path in paths if _is(self.root, path, FileKind.FILE)), None)

    def exec(self, command: Command, *, emit: Emit) -> Exit:
        return _exec(self.config, self.root, command, {}, (), emit, (self.gone,))


def _exec(
    config: ImageConfig,
    files: MemoryFiles,
    command: Command,
    env: Mapping[str, str],
    stdin: Iterable[bytes],
    emit: Emit,
    stops: tuple[threading.Event, ...],
    on_start: OnStart | None = None,
) -> Exit:
    user = _said(_user(files, command.user if command.user is not None else config.user))
    steered = Steered(command.terminal)
    process = Process(
        argv=_said(argv_of(config, command)),
        env=environment(config, user, env, command.env, terminal=command.terminal is not None),
        user=user,
        workdir=_workdir(config, files, command),
        files=MemoryFiles(user.uid, user.gid, files.root, files.lock),
        stdin=iter(stdin),
        emit=emit if command.terminal is None else _shown(emit),
        stops=(*stops, steered.stop),
        terminal=lambda: steered.size,
        deadline=None if command.timeout is None else time.monotonic() + command.timeout,
    )
    if on_start is not None:
        on_start(steered)
    try:
        return Exit(run(process))
    except KilledError as killed:
        return Exit(128 + steered.number, timed_out=killed.timed_out)


def _workdir(config: ImageConfig, files: MemoryFiles, command: Command) -> str:
    """Where it runs, made where it is missing; raises what stands in the way of the command."""
    if command.shell is not None and not _is(files, "/bin/sh", FileKind.FILE):
        raise RefusedError(Reason.NO_SHELL, "the image has no /bin/sh", param="shell")
    workdir = posixpath.normpath(posixpath.join(WORKSPACE, workdir_of(config, command)))
    try:
        MemoryFiles(root=files.root, lock=files.lock).make_folder(workdir)
    except RefusedError as error:
        raise RefusedError(Reason.INVALID_WORKDIR, "it is no folder of the sandbox", param="workdir") from error
    return workdir


def small_system(name: str, *, leave_out: Sequence[str] = ()) -> dict[str, Entry]:
    """A root with the simulated programs but those left out; /etc/image says `name`."""
    programs = {f"bin/{p}": Entry(0o755, data=MARK + p.encode()) for p in PROGRAMS if p not in leave_out}
    texts = {"etc/passwd": PASSWD, "etc/group": GROUP, "etc/image": name.encode()}
    return programs | {path: Entry(data=data) for path, data in texts.items()} | {"tmp": folder(0o1777)}


def _place_network(sandbox: Sandbox, mode: Network) -> None:
    """As in a real sandbox, /proc/net/dev says which interfaces there are: two lines of titles, then one for each."""
    names = ["lo"] if mode is Network.DISABLED else ["lo", "eth0"]
    sandbox.files.make_folder("/proc/net")
    text = "".join(f"{line}\n" for line in ("Inter-|", " face |", *(f"{name}: 0" for name in names)))
    _place(sandbox.files, "proc/net/dev", Entry(data=text.encode()))


def _place(files: MemoryFiles, path: str, entry: Entry) -> None:
    above, _, name = path.rpartition("/")
    children = files.find("/" + above).children
    assert children is not None
    children[name] = entry


def _user(files: MemoryFiles, spec: str) -> User | Refusal:
    def text(path: str) -> bytes:
        return files.read(path).read() if _is(files, path, FileKind.FILE) else b""

    return find_user(spec, text("/etc/passwd"), text("/etc/group"))


def _is(files: MemoryFiles, path: str, kind: FileKind) -> bool:
    try:
        return files.find(path).kind is kind
    except RefusedError:
        return False


def _said(answer: T | Refusal) -> T:
    if isinstance(answer, Refusal):
        raise RefusedError.of(answer)
    return answer


def _absent(key: ContentKey) -> RefusedError:
    return RefusedError(Reason.IMAGE_ABSENT_ON_NODE, "the image is not on this node", details={"content_key": key})
