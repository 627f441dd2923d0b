"""B2: the same start against docker's command line, docker's API and podman."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from bench import podman
from bench.bare import first_byte
from bench.bed import ECHO, docker_with, sandboxes
from bench.docker import LIMITS
from bench.figures import Figure, Target, milliseconds, ratio
from bench.host import UnmeasurableError, folder, run
from bench.rounds import interleaved

_CLI, _API, _PODMAN = "docker run --rm", "docker API", "podman run --rm"
_TARGETS = {
    _CLI: Target(must=5, aim=10, at_least=True),
    _API: Target(must=5, aim=10, at_least=True),
    _PODMAN: Target(must=2.5, aim=5, at_least=True),
}


def measure(rounds: int = 9) -> Iterator[Figure]:
    """How many times faster ours is."""
    with sandboxes() as bed, docker_with(bed.reference) as docker, ExitStack() as stack:
        arguments = [*LIMITS, bed.reference, *ECHO]
        others: dict[str, Callable[[], float]] = {
            _CLI: lambda: _timed([*docker.command, "run", "--rm", *arguments]),
            _API: lambda: docker.first_output(bed.reference, *ECHO),
        }
        try:
            others[_PODMAN] = _podman(bed.reference, arguments, stack)
        except UnmeasurableError as problem:
            yield Figure("B2", f"times faster than {_PODMAN}", _TARGETS[_PODMAN], None, note=str(problem))
        took = interleaved(rounds, {"ours": bed.first_output, **others})
    for name in others:
        yield Figure(
            bench="B2",
            what=f"create + first command, times faster than {name}",
            target=_TARGETS[name],
            value=ratio(took[name], took["ours"]),
            ours=milliseconds(took["ours"]),
            theirs=milliseconds(took[name]),
            command="POST /containers/create, attach, start" if name == _API else f"{name} --network=none IMAGE echo x",
        )


def _podman(reference: str, arguments: Sequence[str], stack: ExitStack) -> Callable[[], float]:
    """Podman with the image, tried once."""
    pod = stack.enter_context(podman.folders(stack.enter_context(folder("podman"))))
    run(*pod, "pull", "--quiet", "--tls-verify=false", reference)
    command = [*pod, "run", "--rm", *podman.ULIMITS, *arguments]
    run(*command)
    return lambda: _timed(command)


def _timed(command: Sequence[str]) -> float:
    begun = time.perf_counter()
    return first_byte(command) - begun
