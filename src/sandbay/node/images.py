"""The agent's half of readiness: applies what `flow.prepare` decides and does what each new state asks for.

Every move is reported before the next one is made, in order. A report that Core refuses or that gets lost
means that the two sides no longer agree: the agent says hello again and starts from what is on disk.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

import structlog

from sandbay.domain.errors import RefusedError
from sandbay.domain.readiness import Readiness, ReadinessEvent, ReadinessState, Unmoved, advance, retry_after
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault, Variant
from sandbay.domain.want import Why
from sandbay.flow.prepare import prepare
from sandbay.node.space import Space, Spare
from sandbay.ports.clock import Clock
from sandbay.ports.node_link import Wanted
from sandbay.ports.provider import PrepareProgress, Provider

_PROGRESS_EVERY = 0.2
_DONE = frozenset({ReadinessState.READY, ReadinessState.FAILED})

Report = Callable[[ContentKey, Readiness], bool]
"""Tells Core; False when it was refused."""

log = structlog.get_logger()


class ImageKeeper:
    """Readiness of every variant that this node was ever told of, and the work towards it."""

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        report: Report,
        lost: Callable[[], None],
        spare: Spare,
        slots: int,
    ) -> None:
        """`slots`: how many prepares run at once. `lost` is called when Core and node disagree."""
        self._provider, self._clock, self._report, self._lost = provider, clock, report, lost
        self._space = Space(provider.disk, spare, clock)
        self._slots = slots
        self._lock = threading.RLock()
        self._wanted = Wanted()
        self._held: dict[ContentKey, Readiness] = {}
        self._discarding: set[ContentKey] = set()
        self._generation = 0
        self._work = ThreadPoolExecutor(slots + 1, "sandbay-prepare")

    def begin(self, wanted: Wanted, on_disk: Sequence[ContentKey]) -> None:
        """After hello: what is on disk and known to Core is proved again before it counts as ready."""
        with self._lock:
            self._generation += 1
            self._wanted = wanted
            found = [key for key in on_disk if key in wanted.variants]
            self._held = {key: Readiness(ReadinessState.VERIFYING) for key in found}
            for key in found:
                self._submit(self._prove_again, key, wanted.variants[key])

    def want(self, wanted: Wanted) -> None:
        """Reconcile towards this set."""
        with self._lock:
            self._wanted = replace(wanted, variants={**self._wanted.variants, **wanted.variants})
            self.step()

    def step(self) -> None:
        """Apply what `flow.evict` and `flow.prepare` say now; harmless when there is nothing to do."""
        with self._lock:
            waiting = self._make_room()
            for key, event in prepare(self._wanted.items, self._held, self._slots, self._clock.now(), waiting):
                self._move(key, event)

    def retry(self, key: ContentKey) -> None:
        """An administrator asks for another try."""
        with self._lock:
            self._move(key, ReadinessEvent.RETRY)
            self.step()

    def drop(self, key: ContentKey, attempt: int) -> None:
        """Core's grant. Where it does not apply Core is told what is here, so that both agree again."""
        with self._lock:
            moved = self._move(key, ReadinessEvent.DROP, attempt)
            if not moved and self._held.get(key, Readiness()).state is not ReadinessState.EVICTING:
                self._tell(key)

    def lost(self, key: ContentKey, fault: Fault) -> None:
        """A start found the bytes damaged or gone: it is not ready here, and is fetched again where it is wanted."""
        with self._lock:
            attempt = self._held.get(key, Readiness()).attempt
            self._move(key, ReadinessEvent.LOST, attempt, fault, self._clock.now())
            self.step()

    def warm(self) -> bool:
        """Whether each required variant is ready or failed."""
        with self._lock:
            required = [key for key, why in self._wanted.items.items if why is Why.REQUIRED]
            return all(self._held.get(key, Readiness()).state in _DONE for key in required)

    def close(self) -> None:
        """Take no more work; what runs ends by itself or with the process."""
        self._work.shutdown(wait=False, cancel_futures=True)

    def _make_room(self) -> frozenset[ContentKey]:
        """Let go what Core grants; tells what has to wait for it."""
        going = dict.fromkeys(self._discarding, Readiness(ReadinessState.EVICTING))
        room = self._space.look(self._wanted, {**self._held, **going}, self._slots)
        for key in self._space.granted(room.go):
            it = self._held.get(key, Readiness())
            if it.state is ReadinessState.READY:
                self._move(key, ReadinessEvent.DROP, it.attempt)
            else:
                self._discarding.add(key)
                self._work.submit(self._discard, key)
        return room.wait

    def _discard(self, key: ContentKey) -> None:
        """Bytes that nobody is told of: what a crash left between the grant and its end, for example."""
        try:
            self._remove(key)
        except Exception:
            log.exception("what nobody needs could not be removed", key=key)
        with self._lock:
            self._discarding.discard(key)
            self.step()

    def _remove(self, key: ContentKey) -> None:
        try:
            self._provider.remove(key)
        except Exception:
            with self._lock:
                self._space.stuck(key)
            raise

    def _submit(self, work: Callable[[ContentKey, Variant, int], None], key: ContentKey, variant: Variant) -> None:
        self._work.submit(self._guarded, work, key, variant, self._generation)

    def _guarded(
        self, work: Callable[[ContentKey, Variant, int], None], key: ContentKey, variant: Variant, generation: int
    ) -> None:
        """Run one piece of work; whatever it raises becomes a diagnostic of this variant alone."""
        attempt = self._held.get(key, Readiness()).attempt
        try:
            work(key, variant, generation)
        except RefusedError as error:
            refusal = error.refusal
            fault = Fault(refusal.reason, refusal.message, refusal.details)
        except Exception:
            log.exception("work on an image failed", key=key)
            fault = Fault(Reason.INTERNAL, "a fault on the node; its log says more")
        else:
            return
        delay = retry_after(fault.reason, attempt)
        retry_at = None if delay is None else self._clock.now() + delay
        with self._lock:
            if generation == self._generation:
                event = ReadinessEvent.LOST if self._held[key].state is ReadinessState.READY else ReadinessEvent.BROKE
                self._move(key, event, attempt, fault, retry_at)
                self.step()

    def _prove_again(self, key: ContentKey, variant: Variant, generation: int) -> None:
        """A pin is history: the bytes are looked at again, without fetching what is whole."""
        self._provider.prepare(variant, lambda _: None)
        self._event(key, ReadinessEvent.PROVED, generation)

    def _prepare(self, key: ContentKey, variant: Variant, generation: int) -> None:
        self._provider.prepare(variant, self._progress(key, generation))
        self._event(key, ReadinessEvent.FETCHED, generation)
        self._provider.probe(variant)
        self._event(key, ReadinessEvent.PROVED, generation)

    def _evict(self, key: ContentKey, _: Variant, generation: int) -> None:
        self._remove(key)
        self._event(key, ReadinessEvent.REMOVED, generation)

    def _event(self, key: ContentKey, event: ReadinessEvent, generation: int) -> None:
        with self._lock:
            if generation == self._generation:
                self._move(key, event, self._held.get(key, Readiness()).attempt)
                self.step()

    def _progress(self, key: ContentKey, generation: int) -> Callable[[PrepareProgress], None]:
        last = 0.0

        def tell(progress: PrepareProgress) -> None:
            nonlocal last
            now = self._clock.monotonic()
            if now - last < _PROGRESS_EVERY:
                return
            last = now
            with self._lock:
                it = self._held.get(key)
                if it is None or it.state is not ReadinessState.PULLING or generation != self._generation:
                    return
                self._held[key] = replace(it, bytes_done=progress.bytes_done, bytes_total=progress.bytes_total)
                self._tell(key)

        return tell

    def _move(
        self,
        key: ContentKey,
        event: ReadinessEvent,
        attempt: int | None = None,
        fault: Fault | None = None,
        retry_at: datetime | None = None,
    ) -> bool:
        """Apply an event; report and act when it moved anything."""
        now = self._held.get(key, Readiness())
        spoken = now.attempt if attempt is None else attempt
        moved = advance(now, event, attempt=spoken, fault=fault, retry_at=retry_at)
        if isinstance(moved, Unmoved):
            return False
        self._held[key] = moved
        if moved == now:
            return True
        self._tell(key)
        if moved.state is not now.state:
            self._act(key, moved.state)
        return True

    def _act(self, key: ContentKey, state: ReadinessState) -> None:
        work = {ReadinessState.PULLING: self._prepare, ReadinessState.EVICTING: self._evict}.get(state)
        if work is not None:
            self._submit(work, key, self._wanted.variants[key])

    def _tell(self, key: ContentKey) -> None:
        try:
            accepted = self._report(key, self._held.get(key, Readiness()))
        except Exception:
            log.exception("a report got lost", key=key)
            accepted = False
        if not accepted:
            self._lost()
