"""B8: a prepare of what is already complete, and many prepares of one image at once."""

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import docker, image, registry
from bench.figures import Figure, Target, milliseconds
from bench.host import file_system
from bench.image import Image
from bench.registry import Registry
from bench.rounds import interleaved
from sandbay.domain.release import Variant
from sandbay.engine.store import LayerStore

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _Seen:
    """Fetches of the layer that was fetched most, blobs asked for when all was there, seconds of a prepare then."""

    most: int
    asked: int
    again: list[float]


def measure(rounds: int = 15) -> Iterator[Figure]:
    """Requests of blobs, fetches of each layer, and the time of a prepare that has nothing to do."""
    big = image.big()
    with registry.serving() as served:
        ours = _ours(served, served.take(big), big, rounds)
        theirs = _docker(served, big, rounds)
    log, exactly = "the registry's access log", Target(must=1, aim=1, unit="")
    yield Figure(
        bench="B8",
        what="prepare of what is complete: requests of blobs",
        target=Target(must=0, aim=0, unit=""),
        value=ours.asked,
        command=log,
    )
    yield Figure(
        bench="B8",
        what=f"{_AT_ONCE} prepares of one image at once: fetches of a layer, the most",
        target=exactly,
        value=ours.most,
        command=log,
    )
    yield Figure(
        bench="B8",
        what="prepare of what is complete: time",
        target=Target(must=5, aim=5, unit=" ms"),
        value=statistics.median(ours.again) * 1000,
        ours=milliseconds(ours.again),
        theirs=milliseconds(theirs),
        command="docker pull of what is there",
        note="there is no must for its time: its aim stands in",
    )


def _ours(served: Registry, variant: Variant, big: Image, rounds: int) -> _Seen:
    def again() -> float:
        begun = time.perf_counter()
        store.prepare(variant, lambda _: None)
        return time.perf_counter() - begun

    with file_system("ours") as disk, served.blobs() as blobs:
        store = LayerStore(disk / "store", blobs)
        before = len(served.asked())
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda _: store.prepare(variant, lambda _: None), range(_AT_ONCE)))
        paths = Counter(asked.path.rpartition("/")[2] for asked in served.asked()[before:] if asked.of_blob)
        before = len(served.asked())
        took = interleaved(rounds, {"ours": again})["ours"]
        asked = sum(asked.of_blob for asked in served.asked()[before:])
    return _Seen(max(paths[layer.digest] for layer in big.layers), asked, took)


def _docker(served: Registry, big: Image, rounds: int) -> list[float]:
    with file_system("docker") as disk, docker.serving(disk / "data") as daemon:
        reference = f"{served.address}@{big.digest}"
        return interleaved(rounds, {"docker": lambda: daemon.pull(reference)[0]})["docker"]
