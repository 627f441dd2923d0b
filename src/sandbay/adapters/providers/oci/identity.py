"""What a running sandbox was really booted from, read from its own mount table and never from an order."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sandbay.domain.release import ContentKey, ImageConfig
from sandbay.engine.store import LayerStore

_OCTAL = re.compile(r"\\([0-7]{3})")


class HeldImage(Protocol):
    """A committed variant, as the layer store proves it from verified bytes."""

    @property
    def key(self) -> ContentKey:
        """Names the content."""

    @property
    def artifacts(self) -> Mapping[str, str]:
        """Computed from the bytes of manifest and config."""

    @property
    def config(self) -> ImageConfig:
        """What the image says of running it."""

    @property
    def lowers(self) -> tuple[str, ...]:
        """Short names of its layer trees, topmost first."""

    @property
    def layers_folder(self) -> Path:
        """The folder that holds the layer trees."""


def held_images(layers: LayerStore) -> Iterator[HeldImage]:
    """All that a store holds, proved one by one, as they are asked for."""
    return (image for key in layers.held() if (image := layers.record(key)) is not None)


def mounted_lowers(mountinfo: str) -> tuple[str, ...] | None:
    """Short names of the layer trees below the root of a mount table, topmost first; None when it is no overlay."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, rest = after.partition(" ")
        if before.split(" ")[4] != "/" or kind != "overlay":
            continue
        options = rest.partition(" ")[2].split(",")
        values = [
            value for name, _, value in (option.partition("=") for option in options) if name.startswith("lowerdir")
        ]
        return tuple(
            _unescape(lower).rsplit("/", 1)[-1]
            for value in values
            for lower in value.split(":")
            if lower not in ("", ".")
        )
    return None


def stood_on(pids: Iterable[int]) -> frozenset[str]:
    """Short names of all layer trees below the roots of these processes; those that have ended stand on none."""
    names: set[str] = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            names |= set(mounted_lowers(Path(f"/proc/{pid}/mountinfo").read_text()) or ())
    return frozenset(names)


def booted_from(lowers: tuple[str, ...], held: Iterable[HeldImage], assembled: ContentKey) -> HeldImage | None:
    """The held variant whose layers are mounted. Where several share all layers, the one it was assembled from.

    `held` is taken no further than to that one.
    """
    same: HeldImage | None = None
    for image in held:
        if image.lowers == lowers:
            if image.key == assembled:
                return image
            same = same or image
    return same


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
