"""Who would get no image any more if a channel moved: asked before every move, whoever moves it and why."""

from collections.abc import Sequence

from sandbay.app.core import Core
from sandbay.app.what_if import what_if
from sandbay.domain.errors import Refusal
from sandbay.domain.impact import ChannelMoved, Impact
from sandbay.domain.reasons import Reason

_TOLD = 50
"""How many are named one by one."""


def losses(core: Core, move: ChannelMoved) -> Sequence[Impact]:
    """Projects, Templates, agents and scopes that have an image now and would be refused one then."""
    return [impact for impact in what_if(core, move) if impact.loses]


def refusal_for(name: str, move: ChannelMoved, lost: Sequence[Impact]) -> Refusal:
    """That the move is refused for these, at least one. Missing tools name it, since those are what one can add."""
    reasons = [it.after.reason for it in lost if it.after.reason is not None]
    reason = Reason.REQUIREMENTS_UNMET if Reason.REQUIREMENTS_UNMET in reasons else reasons[0]
    first = lost[0]
    refusal = first.after.refusal
    why = refusal.message if refusal else reason.value
    others = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    message = (
        f"{name}:{move.channel} at {name}:{move.number} leaves {first.asker.kind.value} {first.asker.name} without an"
        f" image: {why}{others}; force it to move all the same"
    )
    return Refusal(reason, message, "release", {"lost": [told(it) for it in lost[:_TOLD]], "count": len(lost)})


def told(impact: Impact) -> dict[str, object]:
    """One who loses: who it is, what it has now, why it would be refused, and which tools are missing."""
    refusal, path = impact.after.refusal, impact.asker.path
    return {
        "kind": impact.asker.kind.value,
        "name": impact.asker.name,
        "project": path.project_name,
        "has": impact.before.image,
        "reason": impact.after.reason.value if impact.after.reason else None,
        "unmet": list(refusal.details.get("unmet", ())) if refusal else [],  # type: ignore[call-overload]
    }
