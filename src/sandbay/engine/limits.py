"""How much an image may be. The biggest public images pass the defaults; a refusal names the limit it met."""

from dataclasses import dataclass

from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one image. Sizes are bytes; a value equal to its bound passes."""

    layers: int = 127
    manifest_bytes: int = 4 * 1024**2
    config_bytes: int = 8 * 1024**2
    index_depth: int = 3
    index_documents: int = 64
    """Indexes of one image, however they nest."""
    archive_members: int = 100_000
    """Of an uploaded archive."""
    unpacked_bytes: int = 64 * 1024**3
    """Of one layer: the sizes of its files, holes included."""
    entries: int = 3_000_000
    """Of one layer, folders that no entry names included."""
    cpu_seconds: int = 3_600
    """Processor time for unpacking one layer: many times what any that is within the other limits takes."""
    id_range: int = 65_536
    """Owners are below this: what one sandbox's user namespace maps."""
    path_bytes: int = 4_095
    path_depth: int = 256
    """Folders within folders. Whoever walks or removes a tree later may do so recursively."""
    header_bytes: int = 1024**2
    """One pax or GNU record block that goes before an entry."""
    attribute_bytes: int = 3_800
    """Extended attributes of one entry: what ext4 can hold with one block."""
    sparse_segments: int = 100_000
    lower_references: int = 200_000
    """Folders implied, hard links into, and folders with whiteouts of lower layers, of each kind."""
    lower_reference_bytes: int = 32 * 1024**2
    """Their paths, all kinds together."""


MOST_LAYERS = 500
"""What the kernel stacks."""

SETTABLE = frozenset(
    {"layers", "manifest_bytes", "config_bytes", "index_depth", "index_documents", "archive_members"}
    | {"unpacked_bytes", "entries", "cpu_seconds", "header_bytes", "sparse_segments"}
)
"""What an operator may set otherwise. The rest is bounded by kernels and file systems."""


def exceeded(limit: str, value: int, bound: int) -> Refusal:
    """The refusal of what is larger than a limit."""
    message = f"{limit} is {value}, more than the limit of {bound}"
    return Refusal(Reason.LIMIT_EXCEEDED, message, details={"limit": limit, "value": value, "bound": bound})
