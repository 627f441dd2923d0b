"""`sandbox/scopes`, for administrators; `/v1/scopes`: those that a project key may name."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from sandbay.api.calls import Name, TheActor, TheCore, ThePage, project_of
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.scopes import OwnScopeIn, ScopeIn, ScopeList, ScopeOut, scope_out
from sandbay.app.access import find_project
from sandbay.app.bindings import own_scope
from sandbay.app.scopes import drop_scope, list_own_scopes, list_scopes, put_scope
from sandbay.app.subjects import find_lineage
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/scopes", route_class=StrictRoute, tags=["selection"])
project_router = APIRouter(prefix="/v1/scopes", route_class=StrictRoute, tags=["selection"])

ExpectedRevision = Annotated[int | None, Query(ge=0, description="Refuse if it has another one by now.")]
_WRITING = (Reason.SCOPE_UNKNOWN, Reason.NAME_TAKEN, Reason.REVISION_STALE, Reason.LIMIT_REACHED)
_FORGETTING = (Reason.SCOPE_UNKNOWN, Reason.REVISION_STALE, Reason.IN_USE)


@router.get("", responses=refusing())
def get_scopes(core: TheCore, asked: ThePage) -> ScopeList:
    """List all scopes by name."""
    found = list_scopes(core, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, lambda scope: scope.name)
    return ScopeList(items=[scope_out(scope) for scope in shown], next=following)


@router.get("/{scope}", responses=refusing(Reason.SCOPE_UNKNOWN))
def get_scope(core: TheCore, scope: Name) -> ScopeOut:
    """Show a scope."""
    return scope_out(find_lineage(core, scope)[0])


@router.put("/{scope}", responses=refusing(*_WRITING, Reason.NOT_FOUND))
def put_a_scope(core: TheCore, actor: TheActor, scope: Name, body: ScopeIn) -> ScopeOut:
    """Register a scope, or move it below another parent. Sessions that are there stay what they are."""
    owner = None if body.project is None else find_project(core, body.project).id
    return scope_out(put_scope(core, actor, scope, body.parent, owner, body.expected_revision))


@router.delete("/{scope}", status_code=204, responses=refusing(*_FORGETTING))
def delete_scope(core: TheCore, actor: TheActor, scope: Name, expected_revision: ExpectedRevision = None) -> None:
    """Forget a scope. Refused while a scope stands below it, anything under it, or a key is held to it."""
    drop_scope(core, actor, scope, expected_revision)


@project_router.get("", responses=refusing())
def get_own_scopes(core: TheCore, actor: TheActor, asked: ThePage) -> ScopeList:
    """List the scopes that Sessions of this key may name: the project's own and those for everybody."""
    project_of(actor)
    found = list_own_scopes(core, actor, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, lambda scope: scope.name)
    return ScopeList(items=[scope_out(scope) for scope in shown], next=following)


@project_router.get("/{scope}", responses=refusing(Reason.SCOPE_UNKNOWN))
def get_own_scope(core: TheCore, actor: TheActor, scope: Name) -> ScopeOut:
    """Show a scope that Sessions of this key may name."""
    return scope_out(own_scope(core, actor, scope)[0])


@project_router.put("/{scope}", responses=refusing(*_WRITING))
def put_own_scope(core: TheCore, actor: TheActor, scope: Name, body: OwnScopeIn) -> ScopeOut:
    """Register a scope below one of the project's own."""
    return scope_out(put_scope(core, actor, scope, body.parent, project_of(actor), body.expected_revision))


@project_router.delete("/{scope}", status_code=204, responses=refusing(*_FORGETTING))
def delete_own_scope(core: TheCore, actor: TheActor, scope: Name, expected_revision: ExpectedRevision = None) -> None:
    """Forget a scope that stands below one of the project's own."""
    project_of(actor)
    drop_scope(core, actor, scope, expected_revision)
