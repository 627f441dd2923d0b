"""A node's provider with a store of its own: what is measured, without Core."""

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.host import folder
from sandbay.adapters.providers.oci.choice import AUTO, Choice
from sandbay.adapters.providers.oci.provider import OciProvider
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.domain.allocation import Order
from sandbay.domain.command import Command
from sandbay.domain.deployment import MIB, SandboxSize
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import AllocationId, ImageId, ReleaseId, SessionId
from sandbay.domain.release import Variant
from sandbay.domain.trail import DecidedBy, Level
from sandbay.engine.store import LayerStore
from sandbay.ports.blobs import Blobs
from sandbay.ports.provider import ProviderPlace, Stream

SIZE = SandboxSize(cpus=1.0, memory=128 * MIB, pids=64)
"""Of every sandbox that is measured, ours or not."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Node:
    """A provider, and the variant that it runs."""

    provider: OciProvider
    variant: Variant
    lowers: tuple[Path, ...]
    """The trees of its layers, topmost first: the same root file system for the baselines."""

    def create(self) -> AllocationId:
        """Start a sandbox; it has run a program when this returns."""
        order = _order(self.variant)
        self.provider.create(order)
        return order.allocation

    def first_output(self, allocation: AllocationId, *argv: str) -> float:
        """When the first byte of a command's output came, by the clock of `time.perf_counter`. Waits for its end."""
        heard: list[float] = []

        def emit(_stream: Stream, _data: bytes) -> None:
            heard.append(time.perf_counter())

        self.provider.exec(allocation, Command(argv=argv), emit=emit)
        return heard[0]

    def destroy(self, allocation: AllocationId) -> None:
        """End it at once, as a killed container is."""
        self.provider.destroy(allocation)


@contextlib.contextmanager
def running(variant: Variant, blobs: Blobs) -> Iterator[Node]:
    """A node that has prepared the variant."""
    with folder("node") as home:
        run = Path("/run") / home.name
        layers = LayerStore(home / "store", blobs)
        layers.prepare(variant, lambda _: None)
        record = layers.verified(variant.content_key)
        lowers = tuple(record.layers_folder / name for name in record.lowers)
        place = ProviderPlace(home, run, blobs, f"ins_{home.name.replace('-', '').replace('_', '')}", runtime=_asked())
        settings = OciSettings(runtime=Choice(place, OciSettings()).runtime())
        provider = OciProvider(home, run, layers, place.installation, settings)
        try:
            yield Node(provider, variant, lowers)
        finally:
            for left in provider.list_allocations():
                provider.destroy(left)
            provider.close()


def _asked() -> str:
    """The runtime that a node would take, or the one that is named."""
    return os.environ.get("SANDBAY_RUNTIME") or AUTO


def at_once(concurrency: int, each: int, act: Callable[[], None]) -> float:
    """How many times per second an act is done by so many threads, each doing it `each` times."""
    barrier = threading.Barrier(concurrency + 1)

    def work() -> None:
        barrier.wait()
        for _ in range(each):
            act()

    threads = [threading.Thread(target=work) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return concurrency * each / (time.perf_counter() - begun)


def _order(variant: Variant) -> Order:
    number = f"{next(_numbers):020d}"
    frozen = FrozenRelease(
        image=ImageId("img_" + number),
        image_name="bench",
        reference="bench",
        release=ReleaseId("rel_" + number),
        number=1,
        platform=variant.platform,
        artifacts=variant.artifacts,
        providers=variant.providers,
        digest=variant.digest,
        index_digest=None,
        source_commit=None,
        size=variant.size,
        generation=1,
        decided_by=DecidedBy(Level.SESSION),
        trail=(),
    )
    return Order(AllocationId("alo_" + number), SessionId("ses_" + number), frozen, SIZE)
