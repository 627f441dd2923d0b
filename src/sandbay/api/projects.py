"""`projects` and their keys, for administrators; `/v1/project`, for the project itself."""

from dataclasses import replace

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore, ThePage, project_of
from sandbay.api.documented import SELECTING, refusing
from sandbay.api.sessions import admin_session
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page, page_of_more
from sandbay.api.wire.projects import (
    KeyIn,
    KeyList,
    NewKeyOut,
    PreferenceIn,
    ProjectChange,
    ProjectIn,
    ProjectList,
    ProjectOut,
    key_out,
    new_key_out,
    project_out,
)
from sandbay.api.wire.sessions import AdminSessionList
from sandbay.app.access import (
    change_project,
    create_key,
    create_project,
    find_project,
    list_keys,
    list_projects,
    revoke_key,
)
from sandbay.app.bindings import prefer, preferred
from sandbay.app.core import Core
from sandbay.app.sessions import list_sessions
from sandbay.domain.ids import KeyId
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/projects", route_class=StrictRoute, tags=["projects"])
project_router = APIRouter(prefix="/v1/project", route_class=StrictRoute, tags=["projects"])


@router.get("", responses=refusing())
def get_projects(core: TheCore, asked: ThePage) -> ProjectList:
    """List projects by name."""
    shown, following = page(list_projects(core), asked, lambda project: project.name)
    said = preferred(core, shown)
    return ProjectList(items=[project_out(project, said.get(project.id)) for project in shown], next=following)


@router.post("", status_code=201, responses=refusing(Reason.NAME_TAKEN))
def post_project(core: TheCore, actor: TheActor, body: ProjectIn) -> ProjectOut:
    """Make a project."""
    return project_out(create_project(core, actor, body.name), None)


@router.patch("/{project}", responses=refusing(Reason.NOT_FOUND, Reason.REVISION_STALE))
def patch_any_project(core: TheCore, actor: TheActor, project: Name, body: ProjectChange) -> ProjectOut:
    """Change what is given."""
    changed = change_project(
        core,
        actor,
        find_project(core, project),
        scope_required=body.scope_required,
        expected_revision=body.expected_revision,
    )
    return _shown(core, changed)


@router.get("/{project}/keys", responses=refusing(Reason.NOT_FOUND))
def get_keys(core: TheCore, project: Name, asked: ThePage) -> KeyList:
    """List a project's keys by id, without their secrets."""
    shown, following = page(list_keys(core, find_project(core, project)), asked, lambda key: key.id)
    return KeyList(items=[key_out(key) for key in shown], next=following)


@router.post("/{project}/keys", status_code=201, responses=refusing(Reason.NOT_FOUND, Reason.SCOPE_UNKNOWN))
def post_key(core: TheCore, actor: TheActor, project: Name, body: KeyIn) -> NewKeyOut:
    """Make a key. Its secret is in this answer and nowhere else."""
    key, secret = create_key(core, actor, find_project(core, project), body.name, body.principal, body.confinement())
    return new_key_out(key, secret)


@router.delete("/{project}/keys/{key}", status_code=204, responses=refusing(Reason.NOT_FOUND))
def delete_key(core: TheCore, actor: TheActor, project: Name, key: Name) -> None:
    """Revoke a key. It works nowhere from now on."""
    revoke_key(core, actor, find_project(core, project), KeyId(key))


@router.get("/{project}/sessions", responses=refusing(Reason.NOT_FOUND))
def get_project_sessions(core: TheCore, project: Name, asked: ThePage) -> AdminSessionList:
    """List a project's Sessions, newest first, as administrators see them."""
    owner = find_project(core, project)
    records = list_sessions(core, owner.id, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(records, asked, lambda record: record.session.id)
    return AdminSessionList(items=[admin_session(core, record) for record in shown], next=following)


@project_router.get("", responses=refusing())
def get_project(core: TheCore, actor: TheActor) -> ProjectOut:
    """Show the project of this key."""
    return _shown(core, find_project(core, project_of(actor)))


@project_router.patch("", responses=refusing(*SELECTING, Reason.REVISION_STALE))
def patch_project(core: TheCore, actor: TheActor, body: PreferenceIn) -> ProjectOut:
    """Set or clear the image of Sessions that name none. It is resolved now; what is refused changes nothing."""
    project = find_project(core, project_of(actor))
    if not body.speaks and body.expected_revision in (None, project.revision):
        return _shown(core, project)
    reference = body.runtime_image_id if body.speaks else preferred(core, [project]).get(project.id)
    return _shown(core, prefer(core, actor, project, reference, body.expected_revision))


def _shown(core: Core, project: Project) -> ProjectOut:
    return project_out(project, preferred(core, [project]).get(project.id))
