"""A refusal as a value, and the one exception that carries it where values cannot.

Decisions in `flow` return refusals. Adapters, the engine and use cases raise `RefusedError`; the edge
(`api.errors`, the CLI) turns it into the envelope. Every other exception is a fault of ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbay.domain.reasons import Reason

Facts = Mapping[str, object]
"""JSON-ready facts of ours: counts, current values, bounds. Never secrets, never host paths."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not. `param` is a field of this request, or None when the request is not at fault."""

    reason: Reason
    message: str
    param: str | None = None
    details: Facts = field(default_factory=dict)


class RefusedError(Exception):
    """An expected "no" on its way to the edge. `audited`: the audit has it already."""

    def __init__(self, reason: Reason, message: str, *, param: str | None = None, details: Facts | None = None) -> None:
        """Build the refusal that this error carries."""
        super().__init__(f"{reason}: {message}")
        self.refusal = Refusal(reason, message, param, dict(details or {}))
        self.audited = False

    @classmethod
    def of(cls, refusal: Refusal) -> "RefusedError":
        """Wrap a refusal that a decision returned."""
        return cls(refusal.reason, refusal.message, param=refusal.param, details=refusal.details)
