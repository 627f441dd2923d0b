"""`sandbox/bindings`, for administrators; `/v1/scopes/{scope}/binding`, `/v1/agents/{agent}/binding` for a project."""

from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore, ThePage, project_of
from sandbay.api.documented import SELECTING, refusing
from sandbay.api.scopes import ExpectedRevision
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.standing import BindingIn, BindingList, BindingOut, OwnBindingIn, binding_out
from sandbay.api.wire.what_if import BoundOut, bound_out
from sandbay.app.bindings import Bound, bind, bound, named_agent, own_agent, own_scope, unbind
from sandbay.app.core import Actor, Core
from sandbay.app.select import upgrades
from sandbay.app.standing import rows
from sandbay.app.subjects import called, find_subject
from sandbay.domain.binding import MODES, Binding, Mode
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason
from sandbay.ports.standing import key_of

router = APIRouter(prefix="/core/v1/sandbox/bindings", route_class=StrictRoute, tags=["selection"])
project_router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["selection"])

_THERE = (Reason.NOT_FOUND, Reason.SCOPE_UNKNOWN)
_WRITING = (*SELECTING, *_THERE, Reason.REVISION_STALE)


def _shown(core: Core, found: Sequence[Binding]) -> list[BindingOut]:
    newer = upgrades(core, [row.reference for row in found])
    return [binding_out(row, called(core, row.subject), newer.get(row.reference)) for row in found]


@router.get("", responses=refusing())
def get_bindings(core: TheCore, asked: ThePage) -> BindingList:
    """List all bindings by subject."""
    found = rows(core, Binding, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(found, asked, key_of)
    return BindingList(items=_shown(core, shown), next=following)


@router.put("/{subject}", responses=refusing(*_WRITING))
def put_binding(core: TheCore, actor: TheActor, subject: Name, body: BindingIn) -> BoundOut:
    """Bind a subject to an image, in place of its binding. What would refuse its Sessions is refused now."""
    found = find_subject(core, subject, MODES)
    made = bind(core, actor, found, body.mode, body.runtime_image_id, body.reason, body.expected_revision)
    return _made(core, made)


@router.delete("/{subject}", status_code=204, responses=refusing(*_THERE, Reason.REVISION_STALE))
def delete_binding(core: TheCore, actor: TheActor, subject: Name, expected_revision: ExpectedRevision = None) -> None:
    """Take a subject's binding away."""
    unbind(core, actor, find_subject(core, subject, MODES), expected_revision)


@project_router.get("/scopes/{scope}/binding", responses=refusing(*_THERE))
def get_scope_binding(core: TheCore, actor: TheActor, scope: Name) -> BindingOut:
    """Show a scope's binding."""
    own_scope(core, actor, scope)
    return _shown(core, [bound(core, Subject.of_scope(scope))])[0]


@project_router.put("/scopes/{scope}/binding", responses=refusing(*_WRITING))
def put_scope_binding(core: TheCore, actor: TheActor, scope: Name, body: OwnBindingIn) -> BoundOut:
    """Let a scope of the project prefer an image. What is enforced there stays."""
    return _prefer(core, actor, Subject.of_scope(scope), body)


@project_router.delete("/scopes/{scope}/binding", status_code=204, responses=refusing(*_THERE, Reason.REVISION_STALE))
def delete_scope_binding(
    core: TheCore, actor: TheActor, scope: Name, expected_revision: ExpectedRevision = None
) -> None:
    """Take the preference of a scope of the project away."""
    project_of(actor)
    unbind(core, actor, Subject.of_scope(scope), expected_revision)


@project_router.get("/agents/{agent}/binding", responses=refusing(Reason.NOT_FOUND))
def get_agent_binding(core: TheCore, actor: TheActor, agent: Name) -> BindingOut:
    """Show an agent's binding."""
    return _shown(core, [bound(core, own_agent(actor, project_of(actor), agent))])[0]


@project_router.put("/agents/{agent}/binding", responses=refusing(*_WRITING))
def put_agent_binding(core: TheCore, actor: TheActor, agent: Name, body: OwnBindingIn) -> BoundOut:
    """Let an agent of the project prefer an image. What is enforced there stays."""
    return _prefer(core, actor, named_agent(project_of(actor), agent), body)


@project_router.delete("/agents/{agent}/binding", status_code=204, responses=refusing(*_THERE, Reason.REVISION_STALE))
def delete_agent_binding(
    core: TheCore, actor: TheActor, agent: Name, expected_revision: ExpectedRevision = None
) -> None:
    """Take the preference of an agent of the project away."""
    unbind(core, actor, named_agent(project_of(actor), agent), expected_revision)


def _prefer(core: Core, actor: Actor, subject: Subject, body: OwnBindingIn) -> BoundOut:
    project_of(actor)
    made = bind(core, actor, subject, Mode.PREFER, body.runtime_image_id, body.reason, body.expected_revision)
    return _made(core, made)


def _made(core: Core, made: Bound) -> BoundOut:
    row = made.binding
    return bound_out(made, called(core, row.subject), upgrades(core, [row.reference]).get(row.reference))
