"""B12: memory per idle sandbox: whatever is there beside a user's own program."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence

from bench import podman
from bench.bed import IDLE, Bed, docker_with, sandboxes
from bench.docker import LIMITS, Docker
from bench.figures import Figure, Target, kilobytes
from bench.host import family, folder, named, proportional, run

_SANDBOXES = 12


def measure(_rounds: int = 1) -> Iterator[Figure]:
    """Growth per sandbox of the node, docker's daemon or podman, and the helpers that each leaves running."""
    with sandboxes() as bed:
        node, inside = _ours(bed)
        with docker_with(bed.reference) as docker:
            shim = _docker(docker, bed.reference)
        conmon = _podman(bed.reference)
    parts = f"ours: {kilobytes([inside])} inside, {kilobytes([node])} in the node"
    yield Figure(
        bench="B12",
        what="memory per idle sandbox, node and helpers",
        target=Target(must=1e6, aim=64e3, unit=" B"),
        value=node + inside,
        ours=kilobytes([node + inside]),
        theirs=kilobytes([shim]),
        command=f"docker run --detach, {_SANDBOXES} times: daemon and shims",
        note=f"{parts}; podman's conmon {kilobytes([conmon])}",
    )


def _ours(bed: Bed) -> tuple[float, float]:
    """In the node with its children, and inside each sandbox."""
    # What the first sandbox makes the node load belongs to none.
    bed.node.destroy(bed.node.create())
    me = os.getpid()
    before = _settled(lambda: [me, *family(me)])
    made = [bed.node.create() for _ in range(_SANDBOXES)]
    after = _settled(lambda: [me, *family(me)])
    first = [pid for each in made for pid in family(bed.node.provider.booted(each).host_pid)]
    inside = proportional(first)
    # The reaper is a child of the node, and what runs in a sandbox is a child of the reaper.
    grown = after - before - (inside if set(first) & set(family(me)) else 0)
    for each in made:
        bed.node.destroy(each)
    return max(0, grown) / _SANDBOXES, inside / _SANDBOXES


def _docker(docker: Docker, reference: str) -> float:
    docker.remove(docker.create(reference, *IDLE))
    before = _settled(lambda: docker.processes)
    made = [docker.create(reference, *IDLE) for _ in range(_SANDBOXES)]
    after = _settled(lambda: docker.processes)
    for each in made:
        docker.remove(each)
    return (after - before) / _SANDBOXES


def _podman(reference: str) -> float:
    with folder("podman") as store, podman.folders(store) as pod:
        run(*pod, "pull", "--quiet", "--tls-verify=false", reference)
        for _ in range(_SANDBOXES):
            run(*pod, "run", "--detach", *podman.ULIMITS, *LIMITS, reference, *IDLE)
        return proportional(named("conmon", str(store))) / _SANDBOXES


def _settled(processes: Callable[[], Sequence[int]]) -> int:
    gc.collect()
    return proportional(sorted(set(processes())))
