"""What an installation counts for Prometheus. Each Core has its own: nothing here is shared by a process.

Counters live in memory and begin at nothing with every start, as Prometheus expects. Gauges are computed from the
store when somebody asks, so they cannot drift. Labels are reasons, states, providers and names of images: each has
few values, and none is a secret. The engine's own prepares are timed by Core, from the first report to the last.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sandbay.app.live import live_sessions
from sandbay.domain.ids import NodeId
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.release import ContentKey
from sandbay.ports.clock import Clock
from sandbay.ports.store import Nodes, Store

_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)
_PREPARING = frozenset({ReadinessState.PULLING, ReadinessState.VERIFYING})
_PREPARED = frozenset({ReadinessState.READY, ReadinessState.FAILED})
_DROPPED = frozenset({ReadinessState.ABSENT, ReadinessState.QUEUED})


class Metrics:
    """Counts what happens. Safe to use from several threads."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._registry = CollectorRegistry()
        self._began: dict[tuple[NodeId, ContentKey, int], datetime] = {}
        self._admissions = Counter(
            "sandbay_admissions",
            "Sessions asked for, by outcome (placed, waiting, replayed, refused) and the refusal's reason.",
            ["outcome", "reason"],
            registry=self._registry,
        )
        self._hits = Counter(
            "sandbay_image_cache_hits", "Admissions whose release a node held, ready.", registry=self._registry
        )
        self._misses = Counter(
            "sandbay_image_cache_misses", "Admissions whose release had to be prepared first.", registry=self._registry
        )
        self._prepares = Histogram(
            "sandbay_prepare_seconds",
            "From the first byte of a prepare to its proof or its failure.",
            ["outcome"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._bytes = Counter(
            "sandbay_prepare_bytes", "Bytes of images that nodes prepared to the end.", registry=self._registry
        )
        self._evicted = Counter(
            "sandbay_evicted_bytes",
            "Bytes of images that nodes evicted, layers that others share included.",
            registry=self._registry,
        )
        self._starts = Histogram(
            "sandbay_session_start_seconds",
            "From a Session's admission to its running, waits for an image or a place included.",
            buckets=_SECONDS,
            registry=self._registry,
        )

    def admitted(self, outcome: str, reason: str = "") -> None:
        """One create call has been decided. The reason only where it was refused."""
        self._admissions.labels(outcome, reason).inc()

    def looked_for_image(self, *, ready: bool) -> None:
        """A node held what a Session was to run, or none did."""
        (self._hits if ready else self._misses).inc()

    def moved(self, node: NodeId, key: ContentKey, stored: Readiness, reported: Readiness, now: datetime) -> None:
        """A node's report about a variant, and what was stored before; one attempt is counted once."""
        if stored.state is ReadinessState.EVICTING and reported.state in _DROPPED:
            self._evicted.inc(stored.bytes_total)
        this = (node, key, reported.attempt)
        if reported.state is ReadinessState.PULLING:
            self._began.setdefault(this, now)
        if reported.state in _PREPARING:
            return
        began = self._began.pop(this, None)
        if began is None or reported.state not in _PREPARED:
            return
        self._prepares.labels(reported.state.value).observe((now - began).total_seconds())
        if reported.state is ReadinessState.READY:
            self._bytes.inc(reported.bytes_total)

    def started(self, created: datetime, now: datetime) -> None:
        """A Session has come to run."""
        self._starts.observe(max((now - created).total_seconds(), 0.0))

    def exposed(self, store: Store, clock: Clock) -> bytes:
        """All of it in Prometheus' text format; the gauges are read from the store now."""
        now = CollectorRegistry(auto_describe=False)
        now.register(_Rows([_sessions(store), _nodes(store, clock)]))
        return generate_latest(self._registry) + generate_latest(now)


class _Rows(Collector):
    """Gauges that have been computed."""

    def __init__(self, gauges: Iterable[Metric]) -> None:
        self._gauges = list(gauges)

    def collect(self) -> Iterator[Metric]:
        yield from self._gauges


def _sessions(store: Store) -> Metric:
    counts = Tally((it.frozen.image_name, it.session.state.value) for it in live_sessions(store))
    gauge = GaugeMetricFamily("sandbay_sessions", "Sessions that have not ended.", labels=["image", "state"])
    for labels, count in sorted(counts.items()):
        gauge.add_metric(labels, count)
    return gauge


def _nodes(store: Store, clock: Clock) -> Metric:
    now = clock.now()
    counts = Tally((it.provider, "online" if it.online(now) else "away") for it in store.read(Nodes()))
    gauge = GaugeMetricFamily("sandbay_nodes", "Nodes known to this installation.", labels=["provider", "state"])
    for labels, count in sorted(counts.items()):
        gauge.add_metric(labels, count)
    return gauge
