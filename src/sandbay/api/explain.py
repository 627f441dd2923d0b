"""`/v1/explain`: what admission would decide, and why."""

from fastapi import APIRouter

from sandbay.api.calls import TheActor, TheCore
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.explain import ExplainIn, ExplanationOut, explanation_out
from sandbay.app.explain import explain
from sandbay.app.select import Wish
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/v1/explain", route_class=StrictRoute, tags=["sessions"])


@router.post("", responses=refusing(Reason.TEMPLATE_UNKNOWN))
def post_explain(core: TheCore, actor: TheActor, body: ExplainIn) -> ExplanationOut:
    """Decide as admission does, and make nothing."""
    wish = Wish(body.runtime_image_id, body.platform, requires=body.requirements())
    return explanation_out(explain(core, actor, wish, body.template))
