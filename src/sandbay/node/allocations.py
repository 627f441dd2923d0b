"""The agent's half of running: applies what `flow.run` decides for each allocation, one at a time per allocation.

A sandbox whose booted identity is not the frozen one is destroyed before anybody can use it.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from sandbay.domain.allocation import AllocationState, Booted, Order, Presence, mismatch
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import AllocationId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault
from sandbay.flow.run import Move, run
from sandbay.ports.node_link import AllocationReport, Assigned
from sandbay.ports.provider import Provider

_WORKERS = 8
_LOST = Fault(Reason.NODE_LOST, "the node no longer has the sandbox")

_GONE = frozenset({Reason.CONTENT_LOST, Reason.IMAGE_ABSENT_ON_NODE})

Report = Callable[[AllocationReport], bool]
"""Tells Core; False when it was refused."""

Lost = Callable[[ContentKey, Fault], None]
"""Told when a start found that the image's bytes are damaged or gone."""

log = structlog.get_logger()


class AllocationRunner:
    """What this node runs."""

    def __init__(self, provider: Provider, report: Report, lost: Lost) -> None:
        """Nothing runs until `adopt`."""
        self._provider, self._report, self._lost = provider, report, lost
        self._lock = threading.Lock()
        self._orders: dict[AllocationId, Order] = {}
        self._running: set[AllocationId] = set()
        self._busy: dict[AllocationId, threading.Lock] = {}
        self._work = ThreadPoolExecutor(_WORKERS, "sandbay-allocation")

    def adopt(self, assigned: Sequence[Assigned]) -> None:
        """After hello: bring what Core says and what is here together. What nobody owns is destroyed."""
        said = {a.order.allocation: a for a in assigned}
        with self._lock:
            self._orders = {key: a.order for key, a in said.items()}
            self._running.clear()
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

    def stop(self, allocation: AllocationId) -> None:
        """End it."""
        with self._lock:
            self._running.discard(allocation)
        self._submit(allocation, AllocationState.STOPPING)

    def look(self) -> None:
        """Notice sandboxes that ended by themselves."""
        with self._lock:
            running = list(self._running)
        for allocation in running:
            if self._provider.presence(allocation) in (Presence.ABSENT, Presence.EXITED):
                self._submit(allocation, AllocationState.RUNNING)

    def close(self) -> None:
        """Take no more work. Sandboxes go on without us and are adopted by the next agent."""
        self._work.shutdown(wait=True, cancel_futures=True)

    def _submit(self, allocation: AllocationId, said: AllocationState | None) -> None:
        self._work.submit(self._one, allocation, said)

    def _one(self, allocation: AllocationId, said: AllocationState | None) -> None:
        with self._lock:
            busy = self._busy.setdefault(allocation, threading.Lock())
        with busy:
            try:
                self._do(run(said, self._provider.presence(allocation)), allocation)
            except Exception:
                # Nothing is reported: the outcome is unknown. Core tells us again, and we look again.
                with self._lock:
                    self._orders.pop(allocation, None)
                log.exception("an allocation's move failed", allocation=allocation, said=said)

    def _do(self, move: Move, allocation: AllocationId) -> None:
        match move:
            case Move.CREATE | Move.ADOPT:
                self._bring_up(move, allocation)
            case Move.DESTROY | Move.REPORT_CLOSED:
                self._bring_down(allocation, None)
            case Move.REPORT_LOST:
                self._bring_down(allocation, _LOST)
            case Move.LOOK_AGAIN | Move.NOTHING:
                return

    def _bring_up(self, move: Move, allocation: AllocationId) -> None:
        order = self._orders.get(allocation)
        if order is None:
            return
        fault, booted = self._boot(move, order)
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
            return Fault(error.refusal.reason, error.refusal.message, error.refusal.details), None
        except Exception:
            log.exception("a sandbox did not start", allocation=order.allocation)
            return Fault(Reason.START_FAILED, "the sandbox did not start; the node's log says more"), None
        wrong = mismatch(order.frozen, booted)
        if wrong:
            details = {name: {"frozen": frozen, "booted": got} for name, (frozen, got) in wrong.items()}
            return Fault(Reason.IMAGE_MISMATCH, "what booted is not what was frozen", details), None
        return None, booted

    def _bring_down(self, allocation: AllocationId, fault: Fault | None) -> None:
        self._provider.destroy(allocation)
        self._report(AllocationReport(allocation, AllocationState.CLOSED, fault=fault))
        with self._lock:
            self._orders.pop(allocation, None)
            self._running.discard(allocation)
            self._busy.pop(allocation, None)
