"""Ids and secrets from the operating system's randomness."""

import secrets
import string

from sandbay.domain.ids import PREFIXES, SUFFIX_LENGTH

_ALPHABET = string.digits + string.ascii_lowercase


class RandomIds:
    """The port `ids`, for real."""

    def new(self, kind: str) -> str:
        """The kind's prefix and 20 characters of base 36: 103 bits."""
        return PREFIXES[kind] + _random(SUFFIX_LENGTH)

    def secret(self, prefix: str) -> str:
        """The prefix and 40 characters of base 36: 206 bits."""
        return prefix + _random(2 * SUFFIX_LENGTH)


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
