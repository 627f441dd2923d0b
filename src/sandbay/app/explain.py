"""What admission would do with a Session, and why, without doing it. Placement is a separate section."""

from dataclasses import dataclass, replace

from sandbay.app.core import Core
from sandbay.app.place_session import enforcing
from sandbay.app.select import Selection, Wish, select
from sandbay.app.templates import find_template, overtaxed
from sandbay.domain.choosing import Rejected
from sandbay.domain.deployment import NOTHING_ASKED
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ProjectId, SessionId
from sandbay.domain.placement import Placed, Unplaced
from sandbay.domain.template import Preparation
from sandbay.flow.freeze import freeze_template
from sandbay.flow.place import place


@dataclass(frozen=True)
class Explanation:
    """The selection, and what placement would say now (None when nothing was selected)."""

    selection: Selection
    placement: Placed | Unplaced | None


def explain(core: Core, project: ProjectId, wish: Wish, template_name: str | None = None) -> Explanation:
    """The same load and the same decisions as `admit_session`. `wish.key`: what that Session's key is held to."""
    template = find_template(core, project, template_name, "template") if template_name is not None else None
    selection = select(core, project, replace(wish, template=template))
    chosen = selection.outcome
    if isinstance(chosen, Rejected):
        return Explanation(selection, None)
    frozen = selection.frozen()
    kept = freeze_template(template, Preparation())
    try:
        able = enforcing(core, selection.deployment, frozen, kept.network, kept.setup_network)
    except RefusedError as error:
        return Explanation(replace(selection, outcome=Rejected(overtaxed(error.refusal, kept), chosen.trail)), None)
    return Explanation(selection, place(frozen, NOTHING_ASKED, able.pools, able.fleet, SessionId("")))
