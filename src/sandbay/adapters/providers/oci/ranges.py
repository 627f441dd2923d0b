"""User id ranges: each allocation owns 65,536 host ids that nothing else on the host uses.

The block lies where distributions, systemd and `/etc/subuid` hand out nothing (systemd's "Users, Groups,
UIDs and GIDs" lists 0x70000000 … 0x7FFDFFFF as unused). Which range an allocation owns is part of its
folder, so a restart knows it and it is free again when the folder is gone.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from sandbay.domain.command import ID_LIMIT

RANGE = ID_LIMIT


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive ranges: the first host id, and how many ranges of `RANGE` ids."""

    base: int = 0x70000000
    count: int = 2048


def foreign_ranges(subid: str) -> list[range]:
    """What `/etc/subuid` or `/etc/subgid` gives to users; lines that are none are skipped."""
    found = []
    for line in subid.splitlines():
        _, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if first.isdigit() and count.isdigit():
            found.append(range(int(first), int(first) + int(count)))
    return found


def free_base(block: Block, owner: str, taken: Collection[int], foreign: Iterable[range] = ()) -> int | None:
    """The first id of a free range, or None when all are taken.

    `owner` says where to begin, so that two installations on one host rarely meet; `taken` are bases.
    """
    others = list(foreign)
    start = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:4], "big") % block.count
    for step in range(block.count):
        base = block.base + (start + step) % block.count * RANGE
        if base not in taken and not any(base < other.stop and other.start < base + RANGE for other in others):
            return base
    return None


def subids() -> str:
    """What this host's `/etc/subuid` and `/etc/subgid` say, where there are such files."""
    paths = (Path("/etc/subuid"), Path("/etc/subgid"))
    return "".join(path.read_text() for path in paths if path.exists())
