"""The deployment: one row that says where Sandbay runs sandboxes. What they run is the catalog's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sandbay.domain.ids import ImageId
from sandbay.domain.platform import Platform

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxSize:
    """What one sandbox may use. Memory in bytes."""

    cpus: float = 1.0
    memory: int = 1024 * MIB
    pids: int = 256

    def holds(self, wanted: "SandboxSize") -> bool:
        """Whether a sandbox of this size satisfies a minimum."""
        return self.cpus >= wanted.cpus and self.memory >= wanted.memory and self.pids >= wanted.pids


NOTHING_ASKED = SandboxSize(cpus=0, memory=0, pids=0)
"""The minimum of a request that states none."""


class PoolAdmission(StrEnum):
    """Whether a pool takes new Sessions."""

    OPEN = "open"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Pool:
    """An ordered, named set of nodes with one provider, one platform and one size of sandbox."""

    name: str
    provider: str
    platform: Platform
    size: SandboxSize = field(default_factory=SandboxSize)
    admission: PoolAdmission = PoolAdmission.OPEN
    node_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Every change makes a new generation; pools stand in the order in which they are tried."""

    generation: int
    default_platform: Platform
    pools: tuple[Pool, ...] = ()
    default_image: ImageId | None = None

    def pool(self, name: str) -> Pool | None:
        """The pool of this name."""
        return next((p for p in self.pools if p.name == name), None)
