"""Making ids needs randomness, so it is a port."""

from typing import Protocol


class Ids(Protocol):
    """`new("session")` → `ses_…`; kinds are those of `domain.ids.PREFIXES`."""

    def new(self, kind: str) -> str:
        """A fresh id of this kind."""

    def secret(self, prefix: str) -> str:
        """A fresh secret of at least 128 bits that starts with the prefix."""
