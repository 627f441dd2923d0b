"""Where an image is registered from. Every source goes through the same reading and verifying code.

Contract: `read` copies every wanted blob into the installation's store, verified, and only then answers.
It refuses by a reason of the groups content, transfer or room, and never picks one of several images.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbay.domain.platform import Platform
from sandbay.domain.release import Variant
from sandbay.ports.blobs import Blobs


@dataclass(frozen=True, slots=True)
class Copied:
    """How far the copying is, in bytes; each of the layers is counted once, however many variants have it."""

    bytes_done: int
    bytes_total: int
    layers: int


Progress = Callable[[Copied], None]
"""Called once all is known that will be copied, and then of every piece; from several threads, never at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which platforms: all of `platforms` that the source has; and which image where there are several."""

    platforms: Sequence[Platform]
    tag: str | None = None


class ImageSource(Protocol):
    """One source, opened."""

    def read(self, wanted: Wanted, blobs: Blobs, progress: Progress) -> tuple[Variant, ...]:
        """The wanted variants, each without `providers` (the caller decides those). Never empty.

        `platform_mismatch` (details: `offered`, `wanted`) when none of the wanted platforms is there.
        """
