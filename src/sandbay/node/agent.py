"""The node's process: says hello, keeps images, runs allocations, serves commands. One provider, one runtime."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from sandbay.domain.allocation import Booted, Order
from sandbay.domain.command import Command
from sandbay.domain.contract import CheckOrder
from sandbay.domain.declaration import Ability
from sandbay.domain.disk import Disk
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId, NodeId, SnapshotId
from sandbay.domain.node import HEARTBEAT
from sandbay.domain.platform import Platform
from sandbay.domain.readiness import Readiness
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Variant
from sandbay.node.allocations import AllocationRunner
from sandbay.node.checks import CheckRunner
from sandbay.node.images import ImageKeeper
from sandbay.ports.clock import Clock
from sandbay.ports.node_link import AllocationReport, CheckOutcome, CoreReports, Hello, Wanted
from sandbay.ports.provider import Emit, Exit, Files, OnStart, Provider

_STEP_SECONDS = 1.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Identity:
    """Who this node is. `prepares`: how many images are prepared at once; `slots`: how many sandboxes."""

    node: NodeId
    name: str
    runtime: str
    platform: Platform
    slots: int
    labels: Mapping[str, str] = field(default_factory=dict)
    prepares: int = 2


class Agent:
    """One node. `start` connects; `close` leaves sandboxes running for the next agent to adopt."""

    def __init__(self, identity: Identity, provider: Provider, core: CoreReports, clock: Clock) -> None:
        """Nothing happens before `start`."""
        self._identity, self._provider, self._core, self._clock = identity, provider, core, clock
        self._images = ImageKeeper(
            provider,
            clock,
            self._report_image,
            self._disagree,
            lambda keys: core.spare(identity.node, self._epoch, keys),
            identity.prepares,
        )
        self._allocations = AllocationRunner(
            provider,
            self._report_allocation,
            self._images.lost,
            lambda allocation: core.template(identity.node, allocation),
            lambda allocation: core.secrets(identity.node, allocation),
            identity.slots,
        )
        self._checks = CheckRunner(provider, clock, self._report_check, self._images.lost)
        self._epoch = 0
        self._warm = False
        self._say_hello = threading.Event()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="sandbay-node", daemon=True)

    def start(self) -> None:
        """Say hello, then serve until `close`."""
        self._hello()
        self._thread.start()

    def close(self) -> None:
        """Stop serving. Sandboxes go on."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._images.close()
        self._allocations.close()
        self._checks.close()

    # Commands of Core

    def want(self, wanted: Wanted) -> None:
        """Reconcile towards this set."""
        self._images.want(wanted)
        self._wake.set()

    def retry(self, key: ContentKey) -> None:
        """Prepare a failed variant again."""
        self._images.retry(key)

    def drop(self, key: ContentKey, attempt: int) -> None:
        """The grant to remove it."""
        self._images.drop(key, attempt)

    def verify(self, variant: Variant, read: Callable[[int], None]) -> None:
        """Look at every byte of a variant, in the calling thread."""
        self._images.verify(variant, read)

    def disk(self) -> Disk | None:
        """What image bytes take here."""
        return self._provider.disk()

    def start_allocation(self, order: Order) -> None:
        """Run an allocation."""
        self._allocations.start(order)

    def stop_allocation(self, allocation: AllocationId) -> None:
        """End an allocation."""
        self._allocations.stop(allocation)

    def suspend_allocation(self, allocation: AllocationId, snapshot: SnapshotId) -> None:
        """Keep an allocation's state and end it."""
        self._require(Ability.SUSPEND)
        self._allocations.suspend(allocation, snapshot)

    def drop_snapshot(self, snapshot: SnapshotId) -> None:
        """Let go of kept state."""
        self._provider.drop_snapshot(snapshot)

    def check(self, order: CheckOrder) -> None:
        """Look at a variant's tools."""
        self._checks.start(order)

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
        """Run a command in a sandbox."""
        self._require(Ability.EXEC if command.terminal is None else Ability.PTY)
        return self._provider.exec(allocation, command, stdin=stdin, emit=emit, cancel=cancel, on_start=on_start)

    def files(self, allocation: AllocationId) -> Files:
        """A sandbox's files."""
        self._require(Ability.FILES)
        return self._provider.files(allocation)

    def booted(self, allocation: AllocationId) -> Booted:
        """What a sandbox was booted from."""
        return self._provider.booted(allocation)

    def _require(self, ability: Ability) -> None:
        """What the provider does not declare is refused by name, whatever its code would do."""
        declaration = self._provider.declaration
        if ability not in declaration.abilities:
            raise RefusedError(
                Reason.ABILITY_UNSUPPORTED,
                f"the provider of this Session has no {ability.value}",
                details={"abilities": sorted(a.value for a in declaration.abilities)},
            )

    # The agent's own life

    def _hello(self) -> None:
        me = self._identity
        on_disk = tuple(self._provider.held())
        can = self._provider.declaration
        hello = Hello(
            *(me.node, me.name, can.kind, me.runtime, me.platform, me.slots, on_disk, me.labels, can.networks)
        )
        welcome = self._core.hello(hello, self)
        self._epoch, self._warm = welcome.epoch, False
        self._images.begin(welcome.wanted, on_disk)
        self._allocations.adopt(welcome.assigned)
        self._images.step()
        self._beat()

    def _loop(self) -> None:
        next_beat = self._clock.monotonic() + HEARTBEAT.total_seconds()
        while not self._closing.is_set():
            self._wake.wait(_STEP_SECONDS)
            self._wake.clear()
            try:
                if self._say_hello.is_set():
                    self._hello()
                    self._say_hello.clear()
                self._images.step()
                self._allocations.look()
                if not self._warm or self._clock.monotonic() >= next_beat:
                    self._beat()
                    next_beat = self._clock.monotonic() + HEARTBEAT.total_seconds()
                self._provider.uphold()
            except Exception:
                log.exception("the node's pass failed; trying again")

    def _beat(self) -> None:
        """Warm, once reached, stays: a later change of what is required sends no node back."""
        self._warm = self._warm or self._images.warm()
        if not self._core.heartbeat(self._identity.node, self._epoch, warm=self._warm):
            self._disagree()

    def _disagree(self) -> None:
        self._say_hello.set()
        self._wake.set()

    def _report_image(self, key: ContentKey, readiness: Readiness) -> bool:
        accepted = self._core.readiness(self._identity.node, self._epoch, key, readiness)
        if not self._warm:
            self._wake.set()
        return accepted

    def _report_check(self, outcome: CheckOutcome) -> bool:
        return self._core.checked(self._identity.node, self._epoch, outcome)

    def _report_allocation(self, report: AllocationReport) -> bool:
        return self._core.allocation(self._identity.node, self._epoch, report)
