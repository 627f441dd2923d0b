"""What becomes of a gated promotion: it waits, it settles, or it fails for a reason. Pure; `app.promotions` applies it.

Unknown is not ready: a node that has not been heard from does not count, whatever it said before. A release that
stopped being one to promote is told before the time that is over, since more time would not have helped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sandbay.domain.node import NodeView
from sandbay.domain.promotion import Promotion
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault


@dataclass(frozen=True)
class PromotionView:
    """One promotion at one moment.

    revision: the channel's. unfit: why no channel may point at the release now, if so. nodes: those that can run it,
    each with its readiness for the variant that it would run.
    """

    promotion: Promotion
    now: datetime
    revision: int
    unfit: Fault | None
    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class Waits:
    """Not yet: `ready` of the `needed` nodes."""

    ready: int
    needed: int


@dataclass(frozen=True, slots=True)
class Settles:
    """The channel may move."""


@dataclass(frozen=True, slots=True)
class Fails:
    """The channel stays where it is."""

    fault: Fault


def promote(view: PromotionView) -> Waits | Settles | Fails:
    """What is to be done now. The same view gives the same answer, however often it is asked."""
    asked = view.promotion
    if view.revision != asked.expected:
        message = f"{asked.channel} has been moved since this promotion began"
        return Fails(Fault(Reason.REVISION_STALE, message, {"expected": asked.expected, "current": view.revision}))
    if view.unfit is not None:
        return Fails(view.unfit)
    counted = progress(view.promotion, view.nodes)
    if asked.deadline <= view.now:
        message = f"it was ready on {counted.ready} of {counted.needed} nodes when the time was over"
        return Fails(Fault(Reason.WAIT_EXPIRED, message, _facts(view, counted)))
    if counted.ready >= counted.needed:
        return Settles()
    return _hopeless(view, counted) or counted


def progress(promotion: Promotion, nodes: tuple[NodeView, ...]) -> Waits:
    """How many nodes are ready, and how many have to be: with nobody to run it, one more than there are."""
    ready = sum(_is_ready(node) for node in nodes)
    return Waits(ready, max(len(nodes), 1) if promotion.nodes is None else promotion.nodes)


def _is_ready(node: NodeView) -> bool:
    return node.online and node.readiness.state is ReadinessState.READY


def _for_good(readiness: Readiness) -> bool:
    """Failed, and time alone will not help."""
    return readiness.state is ReadinessState.FAILED and readiness.retry_at is None


def _hopeless(view: PromotionView, counted: Waits) -> Fails | None:
    """So many nodes have failed for good that those that are there cannot be enough any more."""
    failed = sum(_for_good(node.readiness) for node in view.nodes)
    if not failed or counted.needed > len(view.nodes) or len(view.nodes) - failed >= counted.needed:
        return None
    message = f"{failed} of {len(view.nodes)} nodes cannot prepare it, and {counted.needed} have to be ready"
    return Fails(Fault(Reason.IMAGE_PREPARE_FAILED, message, _facts(view, counted)))


def _facts(view: PromotionView, counted: Waits) -> Mapping[str, object]:
    faults = {it.node.name: it.readiness.fault.reason.value for it in view.nodes if it.readiness.fault}
    missing = sorted(it.node.name for it in view.nodes if not _is_ready(it))
    return {"ready": counted.ready, "needed": counted.needed, "missing": missing, "diagnostics": faults}
