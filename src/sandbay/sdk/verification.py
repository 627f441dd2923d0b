"""What was seen when an image's bytes were looked at again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.wire import Resource, each, take


@dataclass(frozen=True, kw_only=True)
class Verification(Resource):
    """`seen` is the worst of all: whole, damaged or unknown (it could not be looked at).

    blobs: `{digest, size, releases, seen, fault, do}` in the installation's store; nodes: `{node, node_id, release,
    platform, seen, fault, do}` of those that had it ready. `do` says what mends what is damaged.
    """

    image: str
    seen: str
    blobs: tuple[Mapping[str, Any], ...] = ()
    nodes: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Verification":
        """From the answer to `…/verify`."""
        return take(cls, data, blobs=each(dict), nodes=each(dict))
