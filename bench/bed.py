"""What several figures are measured on: the small image on a node of ours, bare, and in a docker daemon."""

import contextlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from bench import docker, image, node, registry
from bench.bare import Bare
from bench.docker import Docker
from bench.host import folder
from bench.node import Node

ECHO = ("/bin/echo", "x")
IDLE = ("/bin/sleep", "100000")


@dataclass(frozen=True)
class Bed:
    """The same root file system, ours and bare; `reference` is where others pull it from."""

    node: Node
    bare: Bare
    reference: str

    def first_output(self) -> float:
        """Seconds from an order to the first byte of its first command; it is destroyed afterwards."""
        begun = time.perf_counter()
        allocation = self.node.create()
        heard = self.node.first_output(allocation, *ECHO)
        self.node.destroy(allocation)
        return heard - begun


@contextlib.contextmanager
def sandboxes() -> Iterator[Bed]:
    """A node that has the small image, and its trees for a bare start."""
    small = image.small()
    with ExitStack() as stack:
        served = stack.enter_context(registry.serving())
        blobs = stack.enter_context(served.blobs())
        ours = stack.enter_context(node.running(served.take(small), blobs))
        place = stack.enter_context(folder("bare"))
        yield Bed(ours, Bare(place, ours.lowers), f"{served.address}@{small.digest}")


@contextlib.contextmanager
def docker_with(reference: str) -> Iterator[Docker]:
    """A docker daemon that has an image."""
    with folder("docker") as data, docker.serving(data) as daemon:
        daemon.pull(reference)
        yield daemon
