"""A project's Templates: `/v1/environments/templates`.

`projects/{p}/environment-templates` shows them to administrators.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from sandbay.api.calls import Name, TheActor, TheCore, ThePage, project_of
from sandbay.api.documented import SELECTING, refusing
from sandbay.api.strict import RoomyRoute, StrictRoute
from sandbay.api.wire.base import page_of_more
from sandbay.api.wire.templates import TemplateChange, TemplateIn, TemplateList, TemplateOut, template_out
from sandbay.app.access import find_project
from sandbay.app.core import Core
from sandbay.app.templates import change_template, create_template, drop_template, list_templates, view_template
from sandbay.domain.ids import ProjectId
from sandbay.domain.reasons import Reason
from sandbay.ports.records import Page

router = APIRouter(prefix="/v1/environments/templates", route_class=RoomyRoute, tags=["templates"])
admin_router = APIRouter(
    prefix="/core/v1/projects/{project}/environment-templates", route_class=StrictRoute, tags=["templates"]
)

_WRITING = (*SELECTING, Reason.SECRET_UNKNOWN, Reason.REQUIREMENTS_UNMET, Reason.NETWORK_UNSUPPORTED, Reason.NAME_TAKEN)


def _page(core: Core, project: ProjectId, asked: Page) -> TemplateList:
    views = list_templates(core, project, replace(asked, limit=asked.limit + 1))
    shown, following = page_of_more(views, asked, lambda view: view.template.name)
    return TemplateList(items=[template_out(view) for view in shown], next=following)


@router.get("", responses=refusing())
def get_templates(core: TheCore, actor: TheActor, asked: ThePage) -> TemplateList:
    """List this project's Templates by name, without the bytes of their files."""
    return _page(core, project_of(actor), asked)


@router.post("", status_code=201, responses=refusing(*_WRITING, Reason.LIMIT_REACHED))
def post_template(core: TheCore, actor: TheActor, body: TemplateIn) -> TemplateOut:
    """Make a Template. What would refuse a Session of it refuses it now, and nothing is written."""
    return template_out(create_template(core, actor, project_of(actor), body.name, body.said()))


@router.get("/{template}", responses=refusing(Reason.TEMPLATE_UNKNOWN))
def get_template(core: TheCore, actor: TheActor, template: Name) -> TemplateOut:
    """Show a Template whole."""
    return template_out(view_template(core, project_of(actor), template))


@router.patch("/{template}", responses=refusing(*_WRITING, Reason.TEMPLATE_UNKNOWN, Reason.REVISION_STALE))
def patch_template(core: TheCore, actor: TheActor, template: Name, body: TemplateChange) -> TemplateOut:
    """Change what is sent: an omitted member keeps what there is, null clears it. Sessions that are there stay."""
    view = change_template(
        core,
        actor,
        project_of(actor),
        template,
        body.said(),
        name=body.name or None,
        expected_revision=body.expected_revision,
    )
    return template_out(view)


@router.delete("/{template}", status_code=204, responses=refusing(Reason.TEMPLATE_UNKNOWN, Reason.REVISION_STALE))
def delete_template(
    core: TheCore,
    actor: TheActor,
    template: Name,
    expected_revision: Annotated[int | None, Query(ge=0, description="Refuse if it has another one by now.")] = None,
) -> None:
    """Forget a Template. Sessions keep what they were admitted with."""
    drop_template(core, actor, project_of(actor), template, expected_revision)


@admin_router.get("", responses=refusing(Reason.NOT_FOUND))
def get_project_templates(core: TheCore, project: Name, asked: ThePage) -> TemplateList:
    """List a project's Templates by name, without the bytes of their files."""
    return _page(core, find_project(core, project).id, asked)


@admin_router.get("/{template}", responses=refusing(Reason.NOT_FOUND, Reason.TEMPLATE_UNKNOWN))
def get_project_template(core: TheCore, project: Name, template: Name) -> TemplateOut:
    """Show a project's Template whole."""
    return template_out(view_template(core, find_project(core, project).id, template))
