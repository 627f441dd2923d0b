"""One prepare in a process of its own, so that what it costs can be told: `python -m bench.prepare ORDER`.

ORDER is JSON: the store's folder, the registry and the variant. The answer is JSON on standard output. A node runs
already when it prepares, so neither the interpreter's start nor the imports count.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.host import UnmeasurableError
from bench.registry import Registry
from sandbay.domain.canonical import plain, rebuild
from sandbay.domain.release import Variant
from sandbay.engine.store import LayerStore
from tools.machine import ROOT


@dataclass(frozen=True, slots=True)
class Cost:
    """What a prepare took, in seconds; `peak` is the most memory that one process had, in bytes."""

    wall: float
    processor: float
    peak: int


def cold(registry: Registry, variant: Variant, store: Path) -> Cost:
    """Prepare in a fresh process, with the registry as the installation's blobs."""
    order = json.dumps({"store": str(store), "host": registry.host, "variant": plain(variant)})
    command = [sys.executable, "-m", "bench.prepare"]
    done = subprocess.run(command, input=order, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise UnmeasurableError(f"the prepare ended with {done.returncode}: {done.stderr[-2000:]}")
    return Cost(**json.loads(done.stdout))


def _main() -> None:
    order = json.loads(sys.stdin.read())
    variant = rebuild(Variant, order["variant"])
    with tempfile.TemporaryDirectory() as scratch, Registry(Path(scratch), order["host"]).blobs() as blobs:
        store = LayerStore(Path(order["store"]), blobs)
        cost, begun = _processor_seconds(), time.perf_counter()
        store.prepare(variant, lambda _: None)
        wall = time.perf_counter() - begun
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024
    print(json.dumps({"wall": wall, "processor": _processor_seconds() - cost, "peak": peak}))


def _processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


if __name__ == "__main__":
    _main()
