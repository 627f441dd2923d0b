"""The agent's half of running: applies what `flow.run` decides for each allocation, one at a time per allocation.

A sandbox whose booted identity is not the frozen one is destroyed before anybody can use it. It is reported to run
when its setup is done, which is once in its life: one that may have been cut short is started over in a fresh sandbox.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from sandbay.domain.allocation import AllocationState, Booted, Order, Presence, mismatch
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId, SnapshotId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault
from sandbay.domain.setup import SetupProgress
from sandbay.domain.template import FrozenTemplate
from sandbay.flow.initialise import initialise
from sandbay.flow.run import Move, run
from sandbay.node.setup import Setup, StoppedError
from sandbay.ports.node_link import AllocationReport, Assigned
from sandbay.ports.provider import Provider

_WORKERS = 8
"""Beside those that are in a setup, which may take long and must keep no other allocation from starting or ending."""

_LOST = Fault(Reason.NODE_LOST, "the node no longer has the sandbox")

_GONE = frozenset({Reason.CONTENT_LOST, Reason.IMAGE_ABSENT_ON_NODE})

Report = Callable[[AllocationReport], bool]
"""Tells Core; False when it was refused."""

Find = Callable[[AllocationId], FrozenTemplate | None]
"""Asks Core what an allocation is to be initialised from."""

Secrets = Callable[[AllocationId], Mapping[str, str]]
"""Variables of an allocation's setup; they are kept nowhere."""

Lost = Callable[[ContentKey, Fault], None]
"""Told when a start found that the image's bytes are damaged or gone."""

log = structlog.get_logger()


class AllocationRunner:
    """What this node runs."""

    def __init__(
        self, provider: Provider, report: Report, lost: Lost, find: Find, secrets: Secrets, slots: int
    ) -> None:
        """Nothing runs until `adopt`. `slots`: how many sandboxes there can be."""
        self._provider, self._report, self._lost, self._find = provider, report, lost, find
        self._secrets = secrets
        self._lock = threading.Lock()
        self._orders: dict[AllocationId, Order] = {}
        self._running: set[AllocationId] = set()
        self._busy: dict[AllocationId, threading.Lock] = {}
        self._setups: dict[AllocationId, Setup] = {}
        self._prepared: set[AllocationId] = set()
        self._unwanted: set[AllocationId] = set()
        self._suspending: dict[AllocationId, SnapshotId] = {}
        self._closing = False
        self._work = ThreadPoolExecutor(_WORKERS + slots, "sandbay-allocation")

    def adopt(self, assigned: Sequence[Assigned]) -> None:
        """After hello: bring what Core says and what is here together. What nobody owns is destroyed."""
        said = {a.order.allocation: a for a in assigned}
        with self._lock:
            self._orders = {key: a.order for key, a in said.items()}
            self._running.clear()
            suspending = ((k, a.snapshot) for k, a in said.items() if a.state is AllocationState.SUSPENDING)
            self._suspending = {key: snapshot for key, snapshot in suspending if snapshot is not None}
        for allocation in {*said, *self._provider.list_allocations()}:
            it = said.get(allocation)
            self._submit(allocation, it.state if it else None)

    def start(self, order: Order) -> None:
        """Run it, unless that is under way."""
        with self._lock:
            if order.allocation in self._orders:
                return
            self._orders[order.allocation] = order
        self._submit(order.allocation, AllocationState.RESERVED)

    def suspend(self, allocation: AllocationId, snapshot: SnapshotId) -> None:
        """Keep its state and end it, unless that is under way."""
        with self._lock:
            if allocation in self._suspending:
                return
            self._suspending[allocation] = snapshot
            self._running.discard(allocation)
        self._submit(allocation, AllocationState.SUSPENDING)

    def stop(self, allocation: AllocationId) -> None:
        """End it."""
        with self._lock:
            self._running.discard(allocation)
            self._unwanted.add(allocation)
            setup = self._setups.get(allocation)
        if setup is not None:
            setup.stop()
        self._submit(allocation, AllocationState.STOPPING)

    def look(self) -> None:
        """Notice sandboxes that ended by themselves, and tell how far setups are."""
        with self._lock:
            running, setups = list(self._running), list(self._setups.values())
        for setup in setups:
            setup.tell()
        for allocation in running:
            if self._provider.presence(allocation) in (Presence.ABSENT, Presence.EXITED):
                self._submit(allocation, AllocationState.RUNNING)

    def close(self) -> None:
        """Take no more work. Sandboxes go on without us and are adopted by the next agent; setups start over there."""
        with self._lock:
            self._closing = True
            setups = list(self._setups.values())
        for setup in setups:
            setup.stop()
        self._work.shutdown(wait=True, cancel_futures=True)

    def _submit(self, allocation: AllocationId, said: AllocationState | None) -> None:
        self._work.submit(self._one, allocation, said)

    def _one(self, allocation: AllocationId, said: AllocationState | None) -> None:
        with self._lock:
            busy = self._busy.setdefault(allocation, threading.Lock())
        with busy:
            try:
                prepared = self._is_prepared(allocation)
                self._do(run(said, self._provider.presence(allocation), prepared=prepared), allocation)
            except StoppedError:
                # What stopped it has something to do with the sandbox next; after a restart, Core tells of it again.
                with self._lock:
                    self._orders.pop(allocation, None)
            except Exception:
                # Nothing is reported: the outcome is unknown. Core tells us again, and we look again.
                with self._lock:
                    self._orders.pop(allocation, None)
                log.exception("an allocation's move failed", allocation=allocation, said=said)
            finally:
                if said is AllocationState.SUSPENDING:
                    with self._lock:
                        self._suspending.pop(allocation, None)

    def _do(self, move: Move, allocation: AllocationId) -> None:
        match move:
            case Move.START_OVER:
                self._provider.destroy(allocation)
                self._bring_up(Move.CREATE, allocation)
            case Move.CREATE | Move.ADOPT:
                self._bring_up(move, allocation)
            case Move.SUSPEND:
                self._keep(allocation)
            case Move.DESTROY | Move.REPORT_CLOSED:
                self._bring_down(allocation, None)
            case Move.REPORT_LOST:
                self._bring_down(allocation, _LOST)
            case Move.LOOK_AGAIN | Move.NOTHING:
                return

    def _keep(self, allocation: AllocationId) -> None:
        """Suspend it. One that cannot be kept runs on; whether it does is looked at, never assumed."""
        with self._lock:
            snapshot = self._suspending.get(allocation)
        if snapshot is None:
            return
        try:
            held = self._provider.suspend(allocation, snapshot)
        except RefusedError as error:
            self._not_kept(allocation, _fault_of(error))
            return
        self._report(AllocationReport(allocation, AllocationState.CLOSED, snapshot_bytes=held.bytes))
        self._forget(allocation)

    def _not_kept(self, allocation: AllocationId, fault: Fault) -> None:
        presence = self._provider.presence(allocation)
        if presence is Presence.RUNNING:
            with self._lock:
                self._running.add(allocation)
            booted = self._provider.booted(allocation)
            self._report(AllocationReport(allocation, AllocationState.RUNNING, booted, fault))
        elif presence is Presence.ABSENT:
            self._bring_down(allocation, _LOST)  # else its files are still there, and Core tells us again

    def _bring_up(self, move: Move, allocation: AllocationId) -> None:
        order = self._orders.get(allocation)
        if order is None:
            return
        fault, booted = self._boot(move, order)
        if fault is None and move is Move.CREATE and not self._is_prepared(allocation):
            fault = self._prepare(order)
        if fault is not None:
            if fault.reason in _GONE:
                self._lost(order.frozen.content_key, fault)
            self._bring_down(allocation, fault)
            return
        with self._lock:
            self._running.add(allocation)
        if not self._report(AllocationReport(allocation, AllocationState.RUNNING, booted)):
            log.warning("core does not know this allocation any more", allocation=allocation)
            self._bring_down(allocation, None)

    def _boot(self, move: Move, order: Order) -> tuple[Fault | None, Booted | None]:
        try:
            booted = self._provider.create(order) if move is Move.CREATE else self._provider.booted(order.allocation)
        except RefusedError as error:
            return _fault_of(error), None
        except Exception:
            log.exception("a sandbox did not start", allocation=order.allocation)
            return Fault(Reason.START_FAILED, "the sandbox did not start; the node's log says more"), None
        wrong = mismatch(order.frozen, booted)
        if wrong:
            details = {name: {"frozen": frozen, "booted": got} for name, (frozen, got) in wrong.items()}
            return Fault(Reason.IMAGE_MISMATCH, "what booted is not what was frozen", details), None
        return None, booted

    def _is_prepared(self, allocation: AllocationId) -> bool:
        """Whether nothing is to be initialised, or this process has seen it done."""
        with self._lock:
            order = self._orders.get(allocation)
            return order is None or order.template_digest is None or allocation in self._prepared

    def _prepare(self, order: Order) -> Fault | None:
        """Initialise a fresh sandbox, and give it the network that it has from then on. Raises StoppedError."""
        allocation = order.allocation
        kept = self._find(allocation)
        if kept is None or kept.document_digest != order.template_digest:
            return Fault(Reason.START_FAILED, "core has not told what to initialise the sandbox from")
        try:
            env = self._secrets(allocation)
        except RefusedError as error:
            return Fault(error.refusal.reason, error.refusal.message, error.refusal.details)
        setup = Setup(self._provider, order, env, lambda progress: self._report(_starting(allocation, progress)))
        with self._lock:
            if self._closing or allocation in self._unwanted:
                raise StoppedError
            self._setups[allocation] = setup
        try:
            fault = setup.run(initialise(kept))
            if fault is None:
                fault = self._connect(order)
        finally:
            with self._lock:
                del self._setups[allocation]
        with self._lock:
            self._prepared.add(allocation)
        return fault

    def _connect(self, order: Order) -> Fault | None:
        before, after = order.networks
        if before is after:
            return None
        try:
            self._provider.set_network(order.allocation, after)
        except RefusedError as error:
            return _fault_of(error)
        return None

    def _bring_down(self, allocation: AllocationId, fault: Fault | None) -> None:
        self._provider.destroy(allocation)
        self._report(AllocationReport(allocation, AllocationState.CLOSED, fault=fault))
        self._forget(allocation)

    def _forget(self, allocation: AllocationId) -> None:
        with self._lock:
            self._orders.pop(allocation, None)
            self._running.discard(allocation)
            self._prepared.discard(allocation)
            self._unwanted.discard(allocation)
            self._busy.pop(allocation, None)


def _fault_of(error: RefusedError) -> Fault:
    return Fault(error.refusal.reason, error.refusal.message, error.refusal.details)


def _starting(allocation: AllocationId, progress: SetupProgress) -> AllocationReport:
    return AllocationReport(allocation, AllocationState.STARTING, setup=progress)
