"""B4: a command in a running sandbox, until its first byte."""

import time
from collections.abc import Iterator

from bench import bare
from bench.bed import ECHO, IDLE, docker_with, sandboxes
from bench.figures import Figure, Target, milliseconds, ratio
from bench.rounds import interleaved


def measure(rounds: int = 25) -> Iterator[Figure]:
    """Ours against the runtime's own exec and docker's API."""
    took = _taken(rounds)
    yield Figure(
        bench="B4",
        what="exec, against the runtime's own",
        target=Target(must=2.0, aim=1.0),
        value=ratio(took["ours"], took["runtime"]),
        ours=milliseconds(took["ours"]),
        theirs=milliseconds(took["runtime"]),
        command=bare.EXEC_COMMAND,
    )
    yield Figure(
        bench="B4",
        what="exec, times faster than docker's API",
        target=Target(must=2.0, aim=2.0, at_least=True),
        value=ratio(took["docker"], took["ours"]),
        ours=milliseconds(took["ours"]),
        theirs=milliseconds(took["docker"]),
        command="POST /containers/ID/exec, /exec/ID/start",
    )


def _taken(rounds: int) -> dict[str, list[float]]:
    with sandboxes() as bed, docker_with(bed.reference) as docker, bed.bare.bundle(*IDLE) as (name, bundle):
        allocation = bed.node.create()
        container = docker.create(bed.reference, *IDLE)
        bed.bare.start(name, bundle)

        def ours() -> float:
            begun = time.perf_counter()
            return bed.node.first_output(allocation, *ECHO) - begun

        contestants = {
            "ours": ours,
            "runtime": lambda: bed.bare.exec(name, *ECHO),
            "docker": lambda: docker.exec(container, *ECHO),
        }
        try:
            return interleaved(rounds, contestants)
        finally:
            bed.bare.delete(name)
            docker.remove(container)
