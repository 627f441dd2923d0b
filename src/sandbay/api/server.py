"""The application: routes, what stands around them, and the envelope for every way to say no."""

from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from sandbay.api import (
    attempts,
    audit,
    bindings,
    ceilings,
    channels,
    deployment,
    disk,
    errors,
    events,
    exec,  # noqa: A004 - it is the resource's name
    exec_socket,
    explain,
    files,
    health,
    images,
    metrics,
    nodes,
    projects,
    promotions,
    publishes,
    readiness,
    registry_secrets,
    releases,
    scopes,
    secrets,
    sessions,
    strict,
    templates,
    uploads,
    what_if,
)
from sandbay.api.calls import threads
from sandbay.api.middleware import Keys, RequestIds
from sandbay.app.core import Core
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason

VERSION = "v1"
_ROUTERS = (
    *(health.router, metrics.router, deployment.router, uploads.router, images.router, releases.router),
    *(channels.router, promotions.router, registry_secrets.router, publishes.router),
    *(templates.admin_router, templates.router, readiness.router, events.router),
    *(nodes.router, disk.router, projects.router, sessions.admin_router, audit.router),
    *(scopes.router, bindings.router, ceilings.allow_lists, ceilings.overrides, ceilings.grants),
    *(scopes.project_router, bindings.project_router),
    *(images.project_router, projects.project_router, explain.router, explain.admin_router),
    *(what_if.router, what_if.admin_router),
    *(secrets.router, secrets.admin_router),
    *(sessions.router, exec.router, exec_socket.router, files.router),
)


def create_app(core: Core) -> FastAPI:
    """The HTTP interface of one Core."""
    app = interface()
    app.state.core = core
    app.add_middleware(Keys, core=core)
    app.add_middleware(RequestIds)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(ClientDisconnect, _gone)
    return app


def interface() -> FastAPI:
    """The routes alone, with nobody behind them."""
    app = FastAPI(
        title="Sandbay",
        version=VERSION,
        summary="Sandboxes for agents from many named, pinned images in one installation.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=threads,
    )
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)  # as they are: `include_router` analyses each of them a second time
    return app


def _id_of(request: Request) -> str:
    request_id: str = request.state.request_id
    return request_id


async def _refused(request: Request, error: Exception) -> Response:
    if not isinstance(error, RefusedError):
        raise error
    await attempts.refused(request, error)
    return errors.refused(error.refusal, _id_of(request))


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    refusal = strict.refusal_of(error)
    await attempts.refused(request, RefusedError.of(refusal))
    return errors.refused(refusal, _id_of(request))


async def _no_route(request: Request, error: Exception) -> Response:
    """Only the router itself raises these: no such page (404), or not with this method (405)."""
    if not isinstance(error, HTTPException):
        raise error
    missing = error.status_code == HTTPStatus.NOT_FOUND
    what = "there is nothing here" if missing else f"{request.method} is not possible here"
    refusal = Refusal(Reason.NOT_FOUND, what)
    return errors.refused(refusal, _id_of(request), status=error.status_code, headers=error.headers)


async def _gone(_request: Request, _error: Exception) -> Response:
    """Nobody reads this; the status is what servers write into their logs for it."""
    return Response(status_code=499)
