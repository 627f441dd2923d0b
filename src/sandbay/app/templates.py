"""A project's Templates. At every write the whole chain runs as it would for a Session, so that none is surprised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sandbay.app import audit
from sandbay.app.access import revision_stale
from sandbay.app.core import Actor, Core
from sandbay.app.place_session import enforcing
from sandbay.app.secrets import refuse_unknown
from sandbay.app.select import Selection, select_templates, upgrades
from sandbay.domain.canonical import sha256
from sandbay.domain.choosing import Rejected
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import ProjectId, TemplateId
from sandbay.domain.reasons import Reason
from sandbay.domain.template import FrozenTemplate, Preparation, Template, preparation_fault
from sandbay.flow.freeze import freeze_template
from sandbay.ports.changes import AddTemplate, ChangeTemplate, Conflict, ConflictKind, DropTemplate
from sandbay.ports.records import Page
from sandbay.ports.store import TemplateOf, Templates

_TRIES = 5


@dataclass(frozen=True)
class TemplateView:
    """A Template, what a Session of it alone would run now, and the newer release of what it is pinned to."""

    template: Template
    selection: Selection
    upgrade: str | None = None


def find_template(core: Core, project: ProjectId, name_or_id: str, param: str | None = None) -> Template:
    """By name or id, or `template_unknown`. What another project owns is exactly as what does not exist."""
    template = core.store.read(TemplateOf(project, name_or_id))
    if template is None:
        raise RefusedError(Reason.TEMPLATE_UNKNOWN, f"the project has no Template {name_or_id}", param=param)
    return template


def view_template(core: Core, project: ProjectId, name_or_id: str) -> TemplateView:
    """One of them, whole."""
    template = find_template(core, project, name_or_id)
    return _view(core, template, select_templates(core, project, [template])[0])


def list_templates(core: Core, project: ProjectId, page: Page) -> Sequence[TemplateView]:
    """By name, without the bytes of files."""
    templates = core.store.read(Templates(project, page))
    return _views(core, templates, select_templates(core, project, templates))


def _view(core: Core, template: Template, selection: Selection) -> TemplateView:
    return _views(core, [template], [selection])[0]


def _views(core: Core, templates: Sequence[Template], selections: Sequence[Selection]) -> Sequence[TemplateView]:
    said = [it.content.runtime_image_id or "" for it in templates]
    newer = upgrades(core, said)
    return [TemplateView(it, now, newer.get(word)) for it, now, word in zip(templates, selections, said, strict=True)]


def create_template(core: Core, actor: Actor, project: ProjectId, name: str, said: Mapping[str, Any]) -> TemplateView:
    """A new Template with these members (see `Preparation.changed`). What no Session could be made of is refused."""
    now = core.clock.now()
    template = Template(TemplateId(core.ids.new("template")), project, name, now, now, Preparation().changed(said))
    try:
        selection = _checked(core, template, said)
        add = AddTemplate(template, core.settings.templates)
        core.store.apply(add, audit.done(core, actor, "template.create", template.id, _facts(template, None)))
    except Conflict as conflict:
        error = _refusal(core, conflict)
        audit.refused(core, actor, "template.create", name, error)
        raise error from conflict
    except RefusedError as error:
        audit.refused(core, actor, "template.create", name, error)
        raise
    return _view(core, template, selection)


def change_template(
    core: Core,
    actor: Actor,
    project: ProjectId,
    name_or_id: str,
    said: Mapping[str, Any],
    *,
    name: str | None = None,
    expected_revision: int | None = None,
) -> TemplateView:
    """Replace the members that are said, and the name when there is one. A stale revision changes nothing."""
    before = find_template(core, project, name_or_id)
    changed = replace(
        before,
        name=name or before.name,
        content=before.content.changed(said),
        updated_at=core.clock.now(),
        revision=before.revision + 1,
    )
    try:
        if expected_revision is not None and expected_revision != before.revision:
            raise _stale(before.revision)
        selection = _checked(core, changed, said)
        done = audit.done(core, actor, "template.update", before.id, _facts(changed, before))
        core.store.apply(ChangeTemplate(changed), done)
    except Conflict as conflict:
        error = _refusal(core, conflict)
        audit.refused(core, actor, "template.update", before.id, error)
        raise error from conflict
    except RefusedError as error:
        audit.refused(core, actor, "template.update", before.id, error)
        raise
    return _view(core, changed, selection)


def drop_template(core: Core, actor: Actor, project: ProjectId, name_or_id: str, expected_revision: int | None) -> None:
    """Forget it. Sessions keep what they were admitted with."""
    for _ in range(_TRIES):
        template = find_template(core, project, name_or_id)
        if expected_revision is not None and expected_revision != template.revision:
            raise _stale(template.revision)
        done = audit.done(core, actor, "template.delete", template.id, _facts(template, template))
        try:
            core.store.apply(DropTemplate(template.id, template.revision), done)
        except Conflict as conflict:
            if conflict.kind not in (ConflictKind.STALE, ConflictKind.MISSING):
                raise
        else:
            return
    raise RefusedError(Reason.REVISION_STALE, "the Template keeps changing; try again")


def _checked(core: Core, template: Template, said: Mapping[str, Any]) -> Selection:
    """What a Session of it would run; raises what would refuse that Session, pointing at a field of this request."""
    fault = preparation_fault(template.content)
    if fault is not None:
        at = ".".join(map(str, fault.at))
        raise RefusedError(Reason.INVALID_BODY, fault.why, param=at if fault.at[0] in said else None)
    refuse_unknown(core, template.project, template.content.secret_env)
    selection = select_templates(core, template.project, [template])[0]
    outcome = selection.outcome
    if isinstance(outcome, Rejected):
        raise _pointing(outcome, said)
    _check_networks(core, template, selection, said)
    return selection


def _pointing(outcome: Rejected, said: Mapping[str, Any]) -> RefusedError:
    """`template` is a field of Sessions; here the field is the Template's own, when this request has it."""
    refusal = outcome.refusal
    fields_at_fault = (str(refusal.details.get("field")), "runtime_image_id") if refusal.param == "template" else ()
    param = next((field for field in fields_at_fault if field.split(".")[0] in said), None)
    return RefusedError(refusal.reason, refusal.message, param=param, details=refusal.details)


def _check_networks(core: Core, template: Template, selection: Selection, said: Mapping[str, Any]) -> None:
    if not selection.deployment.pools:
        return
    kept = freeze_template(template, Preparation())
    try:
        enforcing(core, selection.deployment, selection.frozen(), kept.network, kept.setup_network)
    except RefusedError as error:
        refusal = overtaxed(error.refusal, kept)
        # Packages want a network for the setup, whether or not anybody has said so.
        fields_at_fault = (refusal.details["field"], "packages")
        param = next((str(field) for field in fields_at_fault if field in said), None)
        raise RefusedError(refusal.reason, refusal.message, param=param, details=refusal.details) from error


def overtaxed(refusal: Refusal, kept: FrozenTemplate, *, own_network: bool = False) -> Refusal:
    """`network_unsupported`, pointing at whose word asks for too much: the request's own, or the Template's.

    Of a Template, `details.field` says which of the two networks it is.
    """
    offered = refusal.details.get("offered")
    too_much = isinstance(offered, list) and kept.network not in offered
    field = "network" if too_much else "setup_network"
    of_request = kept.template is None or (field == "network" and own_network)
    if of_request:
        return replace(refusal, param="network")
    return replace(refusal, param="template", details={**refusal.details, "field": field})


def _facts(template: Template, before: Template | None) -> Mapping[str, object]:
    old = before.content if before else Preparation()
    changed = [f.name for f in fields(Preparation) if getattr(old, f.name) != getattr(template.content, f.name)]
    return {
        "name": template.name,
        "revision": template.revision,
        "digest": sha256(template.content.document),
        "before": sha256(before.content.document) if before else None,
        "fields": changed,
    }


def _refusal(core: Core, conflict: Conflict) -> RefusedError:
    if conflict.kind is ConflictKind.LIMIT:
        bound = core.settings.templates
        message = f"a project holds at most {bound} Templates"
        return RefusedError(Reason.LIMIT_REACHED, message, details={"limit": "templates", "bound": bound})
    if conflict.kind is ConflictKind.TAKEN:
        message = "the project has a Template of this name"
        return RefusedError(Reason.NAME_TAKEN, message, param="name", details={"template": conflict.current})
    if conflict.kind is ConflictKind.MISSING:
        return RefusedError(Reason.TEMPLATE_UNKNOWN, "the Template has been deleted meanwhile")
    return revision_stale(conflict)


def _stale(current: int) -> RefusedError:
    message = "the Template has changed since you read it; read it again"
    return RefusedError(Reason.REVISION_STALE, message, param="expected_revision", details={"current": current})
