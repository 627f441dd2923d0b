"""What one layer may still use; the refusal names the limit that it met."""

from sandbay.domain.errors import RefusedError
from sandbay.engine.limits import Limits, exceeded


class Budget:
    """Counts what a layer makes while it is unpacked. Refuses with `limit_exceeded` before it is made."""

    def __init__(self, limits: Limits) -> None:
        """Start from nothing."""
        self.limits = limits
        self.entries = 0
        self.bytes = 0
        self._reference_bytes = 0

    def entry(self) -> None:
        """One more file, folder, link or mark."""
        self.entries += 1
        self._bound("entries", self.entries, self.limits.entries)

    def data(self, size: int) -> None:
        """So many bytes more in files."""
        self.bytes += size
        self._bound("unpacked_bytes", self.bytes, self.limits.unpacked_bytes)

    def owner(self, number: int) -> int:
        """An owner that a sandbox can map: any other is refused, since wrapping it would be another owner."""
        self._bound("id_range", number, self.limits.id_range - 1)
        return number

    def depth(self, depth: int) -> None:
        """How many folders deep a folder is."""
        self._bound("path_depth", depth, self.limits.path_depth)

    def attributes(self, size: int) -> None:
        """The extended attributes of one entry, in bytes."""
        self._bound("attribute_bytes", size, self.limits.attribute_bytes)

    def refer(self, known: set[tuple[bytes, ...]], thing: tuple[bytes, ...]) -> None:
        """One more thing to remember because it depends on lower layers."""
        if thing in known:
            return
        known.add(thing)
        self._reference_bytes += sum(map(len, thing)) + len(thing)
        self._bound("lower_reference_bytes", self._reference_bytes, self.limits.lower_reference_bytes)
        self._bound("lower_references", len(known), self.limits.lower_references)

    def _bound(self, limit: str, value: int, bound: int) -> None:
        if value > bound:
            raise RefusedError.of(exceeded(limit, value, bound))
