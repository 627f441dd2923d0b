"""What admission would do with a Session, and why, without doing it. Placement is a separate section."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.app.core import Actor, Core
from sandbay.app.place_session import enforcing
from sandbay.app.select import Selection, select
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import NOTHING_ASKED
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import SessionId
from sandbay.domain.placement import Placed, Unplaced
from sandbay.domain.reasons import Reason
from sandbay.domain.requirement import Required, Requirement
from sandbay.flow.freeze import freeze
from sandbay.flow.place import place
from sandbay.flow.resolve import Rejected


@dataclass(frozen=True)
class Explanation:
    """The selection, and what placement would say now (None when nothing was selected)."""

    selection: Selection
    placement: Placed | Unplaced | None


def explain(
    core: Core, actor: Actor, reference: str | None, platform: str | None, requires: Sequence[Requirement] = ()
) -> Explanation:
    """The same load and the same decisions as `admit_session`."""
    if actor.project is None:
        raise RefusedError(Reason.FORBIDDEN, "a Session belongs to a project; use a project key")
    selection = select(core, actor.project, reference, platform, [Required(it) for it in requires])
    chosen = selection.outcome
    if isinstance(chosen, Rejected):
        return Explanation(selection, None)
    frozen = freeze(
        chosen.entry.image,
        chosen.release,
        chosen.variant,
        reference=chosen.reference,
        decided_by=chosen.decided_by,
        trail=chosen.trail,
        generation=selection.deployment.generation,
        tools=chosen.tools,
    )
    able = enforcing(core, selection.deployment, frozen, Network.DISABLED)
    return Explanation(selection, place(frozen, NOTHING_ASKED, able.pools, able.fleet, SessionId("")))
