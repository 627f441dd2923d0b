"""B7: the prepare of an image that shares its two lowest layers with one that is there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import docker, image, registry
from bench.figures import Figure, Target, in_seconds, megabytes, ratio
from bench.host import file_system, run, used
from bench.image import Image
from bench.prepare import cold
from bench.registry import Registry
from bench.rounds import interleaved
from sandbay.domain.release import Variant

_SPARE = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Second:
    """What the second image took: seconds, bytes over the wire and on the disk."""

    wall: float
    fetched: int = 0
    disk: int = 0


def measure(rounds: int = 3) -> Iterator[Figure]:
    """Bytes fetched and kept, and the time that it takes."""
    first, second = image.big(), image.sibling()
    shared = {layer.digest for layer in first.layers}
    unique = [layer for layer in second.layers if layer.digest not in shared]
    with registry.serving() as served:
        variants = served.take(first), served.take(second)
        contestants = {
            "ours": lambda: _ours(served, *variants),
            "docker": lambda: _docker(served, first, second),
            "tar": lambda: _tar([second.blob(layer.digest) for layer in unique]),
        }
        took = interleaved(rounds, contestants, warm_up=False)
    yield from _bytes(took, sum(layer.size for layer in unique))
    yield Figure(
        bench="B7",
        what="a shared base: time, against docker pull",
        target=Target(must=0.60, aim=0.45),
        value=ratio([it.wall for it in took["ours"]], [it.wall for it in took["docker"]]),
        ours=in_seconds([it.wall for it in took["ours"]]),
        theirs=in_seconds([it.wall for it in took["docker"]]),
        command="docker pull FIRST && docker pull SECOND, the second timed",
        note="there is no must for its time: B6's stands in",
    )


def _bytes(took: Mapping[str, Sequence[_Second]], unique: int) -> Iterator[Figure]:
    ours = took["ours"]
    yield Figure(
        bench="B7",
        what=f"a shared base: bytes fetched beyond the {unique / 1e6:.1f} MB of unique layers",
        target=Target(must=_SPARE, aim=_SPARE, unit=" B"),
        value=max(it.fetched for it in ours) - unique,
        ours=megabytes([it.fetched for it in ours]),
        theirs=megabytes([it.fetched for it in took["docker"]]),
        command="docker pull, both by the registry's access log",
    )
    yield Figure(
        bench="B7",
        what="a shared base: disk, against the unique layers unpacked by tar",
        target=Target(must=1.02, aim=1.02),
        value=ratio([it.disk for it in ours], [it.disk for it in took["tar"]]),
        ours=megabytes([it.disk for it in ours]),
        theirs=megabytes([it.disk for it in took["tar"]]),
        command="tar -xzf BLOB of each unique layer on a fresh ext4",
    )


def _ours(served: Registry, first: Variant, second: Variant) -> _Second:
    with file_system("ours") as disk:
        store = disk / "store"
        cold(served, first, store)
        before, fetched = used(disk), _fetched(served)
        cost = cold(served, second, store)
        return _Second(cost.wall, _fetched(served) - fetched, used(disk) - before)


def _docker(served: Registry, first: Image, second: Image) -> _Second:
    with file_system("docker") as disk, docker.serving(disk / "data") as daemon:
        daemon.pull(f"{served.address}@{first.digest}")
        before, fetched = used(disk), _fetched(served)
        wall, _ = daemon.pull(f"{served.address}@{second.digest}")
        return _Second(wall, _fetched(served) - fetched, used(disk) - before)


def _tar(blobs: list[Path]) -> _Second:
    with file_system("tar") as disk:
        before = used(disk)
        for number, blob in enumerate(blobs):
            (disk / str(number)).mkdir()
            run("tar", "--numeric-owner", "-xpzf", blob, "-C", disk / str(number))
        return _Second(0, disk=used(disk) - before)


def _fetched(served: Registry) -> int:
    return sum(asked.bytes for asked in served.asked())
