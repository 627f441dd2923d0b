"""`/metrics` for Prometheus, without a key, as `/healthz`: only for who asks from this machine."""

import ipaddress

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from sandbay.api.calls import TheCore
from sandbay.api.documented import Answers
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import Envelope
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason

router = APIRouter(route_class=StrictRoute, tags=["health"])

_ANSWERS: Answers = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."},
    403: {"model": Envelope, "description": "`forbidden`: it is asked for from another machine."},
    "default": {"model": Envelope, "description": "Not well."},
}


@router.get("/metrics", response_class=Response, responses=_ANSWERS)
def get_metrics(request: Request, core: TheCore) -> Response:
    """Count admissions, prepares, starts, Sessions and nodes. No key is needed, from this machine (loopback) only."""
    if request.client is None or not ipaddress.ip_address(request.client.host).is_loopback:
        raise RefusedError(Reason.FORBIDDEN, "metrics are for who asks from this machine (loopback)")
    return Response(core.metrics.exposed(core.store, core.clock), media_type=CONTENT_TYPE_LATEST)
