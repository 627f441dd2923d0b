"""B8: a prepare of what is already complete, and many prepares of one image at once."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench import docker, image, registry
from bench.figures import Figure, Target, milliseconds
from bench.host import file_system
from bench.rounds import interleaved
from sandbay.engine.store import LayerStore

_AT_ONCE = 8
_MILLISECOND = 1e-3


def measure(rounds: int = 15) -> Iterator[Figure]:
    """Requests of blobs, fetches of each layer, and the time of a prepare that has nothing to do."""
    big = image.big()
    with registry.serving() as served, file_system("ours") as disk, file_system("docker") as other:
        variant = served.take(big)
        reference = f"{served.address}@{big.digest}"
        with served.blobs() as blobs, docker.serving(other / "data") as daemon:
            store = LayerStore(disk / "store", blobs)
            before = len(served.asked())
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(lambda _: store.prepare(variant, lambda _: None), range(_AT_ONCE)))
            fetches = Counter(asked.path for asked in served.asked()[before:] if asked.of_blob)
            daemon.pull(reference)

            def again() -> float:
                begun = time.perf_counter()
                store.prepare(variant, lambda _: None)
                return time.perf_counter() - begun

            before = len(served.asked())
            took = interleaved(rounds, {"ours": again})["ours"]
            asked = sum(asked.of_blob for asked in served.asked()[before:])
            theirs = interleaved(rounds, {"docker": lambda: daemon.pull(reference)[0]})["docker"]
    most = max(fetches[path] for path in fetches if path.split("/")[-1] in {layer.digest for layer in big.layers})
    yield Figure(
        bench="B8",
        what="prepare of what is complete: requests of blobs",
        target=Target(must=0, aim=0, unit=""),
        value=asked,
        ours=str(asked),
        command="the registry's access log",
    )
    yield Figure(
        bench="B8",
        what=f"{_AT_ONCE} prepares of one image at once: fetches of a layer, the most",
        target=Target(must=1, aim=1, unit=""),
        value=most,
        ours=str(most),
        command="the registry's access log",
    )
    yield Figure(
        bench="B8",
        what="prepare of what is complete: time",
        target=Target(must=5, aim=5, unit=" ms"),
        value=sorted(took)[len(took) // 2] / _MILLISECOND,
        ours=milliseconds(took),
        theirs=milliseconds(theirs),
        command="docker pull of what is there",
        note="the specification has no must for it: its aim",
    )
