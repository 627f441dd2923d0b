"""B6: a cold prepare by digest from a local registry, everything verified and crash-safe, against `docker pull`."""

import time
from collections.abc import Iterator

from bench import docker, image, registry
from bench.figures import Figure, Target, in_seconds, ratio
from bench.host import file_system, run
from bench.prepare import Cost, cold
from bench.rounds import interleaved


def measure(rounds: int = 5) -> Iterator[Figure]:
    """Wall clock and processor time. Each prepare and each pull has a fresh file system."""
    big = image.big()
    durable: list[float] = []
    with registry.serving() as served:
        variant = served.take(big)
        reference = f"{served.address}@{big.digest}"

        def ours() -> Cost:
            with file_system("ours") as disk:
                return cold(served, variant, disk / "store")

        def theirs() -> Cost:
            with file_system("docker") as disk, docker.serving(disk / "data") as daemon:
                cost, begun = Cost(*daemon.pull(reference), peak=0), time.perf_counter()
                run("sync", "-f", disk)
                durable.append(cost.wall + time.perf_counter() - begun)
                return cost

        costs = interleaved(rounds, {"ours": ours, "docker": theirs}, warm_up=False)
    sides = {
        "wall": (Target(must=0.60, aim=0.40), lambda cost: cost.wall),
        "processor": (Target(must=0.65, aim=0.45), lambda cost: cost.processor),
    }
    for what, (target, of) in sides.items():
        mine, other = (list(map(of, costs[name])) for name in ("ours", "docker"))
        yield Figure(
            bench="B6",
            what=f"cold prepare of {big.size / 1e6:.0f} MB, {what} time, against docker pull",
            target=target,
            value=ratio(mine, other),
            ours=in_seconds(mine),
            theirs=in_seconds(other),
            command="docker pull REGISTRY/IMAGE@DIGEST",
            note=f"ours is on the disk when it ends; docker's is after {in_seconds(durable)} with sync -f",
        )
