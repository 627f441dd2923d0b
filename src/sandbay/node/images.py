"""The agent's half of readiness: applies what `flow.prepare` decides and does what each new state asks for.

Every move is reported before the next one is made, in order. A report that Core refuses or that gets lost
means that the two sides no longer agree: the agent says hello again and starts from what is on disk.

Each piece of work speaks of the attempt that it was begun for. What nobody wants any more ends at its next step of
progress; what the next attempt needs of it, that one makes or has made.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a piece of work was begun for."""

    generation: int
    attempt: int


_Work = Callable[[ContentKey, Variant, _Turn], None]


class _GivenUpError(Exception):
    """Nobody wants it any more."""


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

    def verify(self, variant: Variant, read: Callable[[int], None]) -> None:
        """Look at every byte; see `Provider.verify`. Takes no slot: who prepares does not wait for it."""
        try:
            self._provider.verify(variant, read)
        except RefusedError as error:
            refusal = error.refusal
            if refusal.reason is Reason.CONTENT_LOST:
                self.lost(variant.content_key, Fault(refusal.reason, refusal.message, refusal.details))
            raise

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
        with self._lock:
            full = [it for it, held in self._held.items() if held.fault and held.fault.reason is Reason.NO_SPACE]
            for other in full:
                self._move(other, ReadinessEvent.RETRY)  # there is room again

    def _submit(self, work: _Work, key: ContentKey, variant: Variant) -> None:
        self._work.submit(self._guarded, work, key, variant, _Turn(self._generation, self._held[key].attempt))

    def _guarded(self, work: _Work, key: ContentKey, variant: Variant, turn: _Turn) -> None:
        """Run one piece of work; whatever it raises becomes a diagnostic of this variant alone."""
        try:
            work(key, variant, turn)
        except _GivenUpError:
            return
        except RefusedError as error:
            refusal = error.refusal
            fault = Fault(refusal.reason, refusal.message, refusal.details)
        except Exception:
            log.exception("work on an image failed", key=key)
            fault = Fault(Reason.INTERNAL, "a fault on the node; its log says more")
        else:
            return
        with self._lock:
            if turn.generation == self._generation:
                event = ReadinessEvent.LOST if self._held[key].state is ReadinessState.READY else ReadinessEvent.BROKE
                self._move(key, event, turn.attempt, fault, self._retry_at(fault, turn.attempt))
                self.step()

    def _retry_at(self, fault: Fault, attempt: int) -> datetime | None:
        """Not before the other side wants to be asked again."""
        delay, wanted = retry_after(fault.reason, attempt), fault.details.get("retry_after")
        if delay is None:
            return None
        return self._clock.now() + max(delay, timedelta(seconds=wanted if isinstance(wanted, int) else 0))

    def _prove_again(self, key: ContentKey, variant: Variant, turn: _Turn) -> None:
        """What an earlier life proved, or never came to prove, is history; what is whole is not fetched again."""
        self._provider.prepare(variant, lambda _: None)
        self._provider.probe(variant)
        self._event(key, ReadinessEvent.PROVED, turn)

    def _prepare(self, key: ContentKey, variant: Variant, turn: _Turn) -> None:
        self._provider.prepare(variant, self._progress(key, turn))
        self._event(key, ReadinessEvent.FETCHED, turn)
        self._provider.probe(variant)
        self._event(key, ReadinessEvent.PROVED, turn)

    def _evict(self, key: ContentKey, _: Variant, turn: _Turn) -> None:
        self._remove(key)
        self._event(key, ReadinessEvent.REMOVED, turn)

    def _event(self, key: ContentKey, event: ReadinessEvent, turn: _Turn) -> None:
        with self._lock:
            if turn.generation == self._generation:
                self._move(key, event, turn.attempt)
                self.step()

    def _progress(self, key: ContentKey, turn: _Turn) -> Callable[[PrepareProgress], None]:
        last = 0.0

        def tell(progress: PrepareProgress) -> None:
            nonlocal last
            with self._lock:
                it, now = self._held.get(key, Readiness()), self._clock.monotonic()
                if turn.generation != self._generation:
                    return
                if (it.state, it.attempt) != (ReadinessState.PULLING, turn.attempt):
                    raise _GivenUpError
                if now - last < _PROGRESS_EVERY:
                    return
                last = now
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
