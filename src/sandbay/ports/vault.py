"""Secrets at rest: sealed with a key that is not in the database.

Contract: what `seal` returns tells nothing of the secret, and opens only under the same context.
"""

from typing import Protocol


class Vault(Protocol):
    """One installation's key."""

    def seal(self, secret: bytes, context: str) -> str:
        """Text that may be stored."""

    def unseal(self, sealed: str, context: str) -> bytes:
        """The secret. Refuses with `host_unfit` when it was sealed with another key, or for something else."""
