"""`/healthz` and `/readyz`, without a key."""

from fastapi import APIRouter

from sandbay.api.calls import TheCore
from sandbay.api.documented import Answers
from sandbay.api.errors import status_of
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import Envelope
from sandbay.api.wire.health import HealthOut
from sandbay.app.select import current_deployment
from sandbay.domain.reasons import Reason

router = APIRouter(route_class=StrictRoute, tags=["health"])

_FAULT: Answers = {"default": {"model": Envelope, "description": "Not well."}}
_AWAY: Answers = {
    status_of(Reason.DATABASE_UNAVAILABLE): {
        "model": Envelope,
        "description": f"`{Reason.DATABASE_UNAVAILABLE.value}`",
    }
}


@router.get("/healthz", responses=_FAULT)
async def get_healthz() -> HealthOut:
    """Say that the process serves requests."""
    return HealthOut()


@router.get("/readyz", responses=_AWAY | _FAULT)
def get_readyz(core: TheCore) -> HealthOut:
    """Say that the database answers and the installation is made."""
    current_deployment(core)
    return HealthOut()
