"""`sandbox/readiness`: the matrix of nodes × releases, once or live."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from sandbay.api.calls import TheCore, ThePage
from sandbay.api.documented import refusing
from sandbay.api.events import snapshot
from sandbay.api.live import MEDIA_TYPE, LastEventId, Live, Snapshot, Snapshots, streamed
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.releases import MatrixList, MatrixOut, matrix_out
from sandbay.app.core import Core
from sandbay.app.holdings import matrix
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/readiness", route_class=StrictRoute, tags=["images"])


@router.get(
    "",
    response_model=MatrixList,
    responses=streamed(f"The matrix; with `Accept: {MEDIA_TYPE}` events `readiness`, a cell each, and `gone`.")
    | refusing(Reason.LIMIT_REACHED),
)
async def get_matrix(
    request: Request,
    core: TheCore,
    asked: ThePage,
    accept: Annotated[str, Header(max_length=1024, description=f"`{MEDIA_TYPE}` to follow it.")] = "application/json",
    last_event_id: LastEventId = None,
) -> MatrixList | Response:
    """Tell what each node says of each release of each image; what is nowhere is `absent`."""
    if MEDIA_TYPE in accept:
        return Live(core, request.app.state.threads, Snapshots(lambda: _seen(core), last_event_id))

    def listed() -> MatrixList:
        shown, following = page(_cells(core), asked, _key)
        return MatrixList(items=list(shown), next=following)

    return await run_in_threadpool(listed)


def _cells(core: Core) -> list[MatrixOut]:
    return [matrix_out(entry, holding) for entry, holding in matrix(core)]


def _key(cell: MatrixOut) -> str:
    return f"{cell.image}/{cell.release:09d}/{cell.platform}/{cell.node}/{cell.node_id}"


def _seen(core: Core) -> Sequence[Snapshot]:
    return [snapshot("readiness", _key(cell), cell) for cell in _cells(core)]
