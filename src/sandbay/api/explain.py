"""`/v1/explain`, `sandbox/explain`: what admission would decide, and why."""

from dataclasses import replace

from fastapi import APIRouter

from sandbay.api.calls import TheActor, TheCore, project_of
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.explain import AdminExplainIn, ExplainIn, ExplanationOut, explanation_out
from sandbay.app.access import find_project
from sandbay.app.explain import explain
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/v1/explain", route_class=StrictRoute, tags=["sessions"])
admin_router = APIRouter(prefix="/core/v1/sandbox/explain", route_class=StrictRoute, tags=["selection"])

_ASKING = (Reason.TEMPLATE_UNKNOWN, Reason.SCOPE_UNKNOWN, Reason.SCOPE_REQUIRED)


@router.post("", responses=refusing(*_ASKING))
def post_explain(core: TheCore, actor: TheActor, body: ExplainIn) -> ExplanationOut:
    """Decide as admission does, and make nothing."""
    wish = replace(body.wish(), key=actor.confinement)
    return explanation_out(explain(core, project_of(actor), wish, body.template))


@admin_router.post("", responses=refusing(*_ASKING, Reason.NOT_FOUND))
def post_admin_explain(core: TheCore, body: AdminExplainIn) -> ExplanationOut:
    """Decide as admission does for a Session of a project, with a key that is held to nothing, and make nothing."""
    project = find_project(core, body.project)
    return explanation_out(explain(core, project.id, body.wish(), body.template))
