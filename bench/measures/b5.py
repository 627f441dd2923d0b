"""B5: sandboxes created and destroyed per second, eight at once."""

from collections.abc import Iterator

from bench.bed import IDLE, Bed, docker_with, sandboxes
from bench.docker import Docker
from bench.figures import Figure, Target, per_second, ratio
from bench.node import at_once
from bench.rounds import interleaved

_THREADS, _EACH = 8, 4


def measure(rounds: int = 5) -> Iterator[Figure]:
    """Ours against the runtime alone and docker's API."""
    with sandboxes() as bed, docker_with(bed.reference) as docker:
        rates = interleaved(
            rounds,
            {
                "ours": lambda: at_once(_THREADS, _EACH, lambda: bed.node.destroy(bed.node.create())),
                "bare": lambda: at_once(_THREADS, _EACH, lambda: _bare(bed)),
                "docker": lambda: at_once(_THREADS, _EACH, lambda: _docker(docker, bed.reference)),
            },
        )
    yield Figure(
        bench="B5",
        what=f"create + destroy per second, {_THREADS} at once, against bare",
        target=Target(must=0.5, aim=0.85, at_least=True),
        value=ratio(rates["ours"], rates["bare"]),
        ours=per_second(rates["ours"]),
        theirs=per_second(rates["bare"]),
        command="mount -t overlay … && runc run --detach … && runc delete --force NAME && umount",
    )
    yield Figure(
        bench="B5",
        what=f"create + destroy per second, {_THREADS} at once, times docker's API",
        target=Target(must=5, aim=12, at_least=True),
        value=ratio(rates["ours"], rates["docker"]),
        ours=per_second(rates["ours"]),
        theirs=per_second(rates["docker"]),
        command="POST /containers/create, start, DELETE ?force=1",
    )


def _bare(bed: Bed) -> None:
    with bed.bare.bundle(*IDLE) as (name, bundle):
        bed.bare.start(name, bundle)
        bed.bare.delete(name)


def _docker(docker: Docker, reference: str) -> None:
    docker.remove(docker.create(reference, *IDLE))
