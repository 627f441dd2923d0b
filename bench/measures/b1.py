"""B1: a node creates a sandbox whose image is ready; until the first command's first byte."""

from collections.abc import Iterator

from bench import bare
from bench.bed import ECHO, sandboxes
from bench.figures import Figure, Target, milliseconds, ratio
from bench.rounds import interleaved


def measure(rounds: int = 15) -> Iterator[Figure]:
    """Ours against the runtime alone."""
    with sandboxes() as bed:
        took = interleaved(rounds, {"ours": bed.first_output, "bare": lambda: bed.bare.first_output(*ECHO)})
    yield Figure(
        bench="B1",
        what="create + first command, against bare",
        target=Target(must=2.0, aim=1.3),
        value=ratio(took["ours"], took["bare"]),
        ours=milliseconds(took["ours"]),
        theirs=milliseconds(took["bare"]),
        command=bare.COMMAND,
    )
