"""What a host may set for the oci provider."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbay.adapters.providers.oci.files import FileLimits
from sandbay.adapters.providers.oci.ranges import Block
from sandbay.adapters.providers.oci.resident import PACKAGED
from sandbay.ports.provider import Finding, Reach

INIT = Path("/usr/bin/catatonit")
"""Static, reaps, and stays without a program of the image; mount tables inside show this path and none of ours."""


@dataclass(frozen=True, slots=True)
class OciSettings:
    """`grace` in seconds between the stop signal and the kill; `init` is for where there is no `spawner`.

    `explain` tells what a diagnosis adds: why this runtime.
    """

    runtime: str = "runc"
    spawner: Path | None = PACKAGED
    init: Path = INIT
    block: Block = field(default_factory=Block)
    file_limits: FileLimits = field(default_factory=FileLimits)
    grace: float = 2.0
    reach: Reach = field(default_factory=Reach)
    explain: Callable[[], Sequence[Finding]] = tuple
