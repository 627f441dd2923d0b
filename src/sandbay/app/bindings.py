"""Bindings: the whole chain runs when one is written, so that no Session is surprised; a refused one is not written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sandbay.app import audit
from sandbay.app.access import find_project
from sandbay.app.core import Actor, Core
from sandbay.app.select import select_bound
from sandbay.app.standing import Check, by, drop_row, put_row, row_of
from sandbay.app.subjects import path_of
from sandbay.app.what_if import what_if
from sandbay.domain.binding import MODES, Binding, Mode
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ProjectId
from sandbay.domain.impact import BindingWritten, Impact
from sandbay.domain.path import Subject
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason
from sandbay.domain.scope import Lineage, is_agent_name
from sandbay.domain.trail import Level
from sandbay.flow.permit import may_bind, visible
from sandbay.flow.resolve import Rejected
from sandbay.ports.changes import Change, ChangeProject
from sandbay.ports.standing import LineageOf, StandingOf, subject_text


@dataclass(frozen=True)
class Bound:
    """What was written, and whose image changed by it."""

    binding: Binding
    changes: Sequence[Impact]


def bind(
    core: Core,
    actor: Actor,
    subject: Subject,
    mode: Mode,
    reference: str,
    reason: str | None = None,
    expected: int | None = None,
    *,
    project_revision: int | None = None,
) -> Bound:
    """Write the binding of this subject, in place of the one that is there.

    Refuses what this actor may not write, and what would refuse the Sessions that it chooses for.
    """
    row = Binding(subject, mode, reference, by(core, actor, reason))
    changes: Sequence[Impact] = ()

    def check(there: Binding | None) -> None:
        nonlocal changes
        _permit(core, actor, subject)(there)
        if mode not in MODES[subject.level]:
            message = "the deployment can only enforce; what it prefers is its default image"
            raise RefusedError(Reason.INVALID_BODY, message, param="mode")
        outcome = select_bound(core, path_of(core, subject), row).outcome
        if isinstance(outcome, Rejected):
            refusal = outcome.refusal
            raise RefusedError(refusal.reason, refusal.message, param="runtime_image_id", details=refusal.details)
        changes = what_if(core, BindingWritten(subject, row), actor.project)

    written = put_row(core, actor, row, expected, check, _beside(core, subject, project_revision))
    return Bound(written, changes)


def unbind(
    core: Core,
    actor: Actor,
    subject: Subject,
    expected: int | None = None,
    *,
    project_revision: int | None = None,
) -> None:
    """Take the binding of this subject away."""
    check, beside = _permit(core, actor, subject), _beside(core, subject, project_revision)
    drop_row(core, actor, Binding, subject, expected, check, beside=beside)


def preferred(core: Core, projects: Sequence[Project]) -> Mapping[ProjectId, str]:
    """What these projects' bindings say; those that have none are left out."""
    bound = core.store.read(StandingOf(frozenset(Subject.of_project(it.id) for it in projects))).bindings
    return {ProjectId(str(subject.name)): binding.reference for subject, binding in bound.items()}


def prefer(core: Core, actor: Actor, project: Project, reference: str | None, expected_revision: int | None) -> Project:
    """Set or clear what the project prefers: its binding, by the other door. `expected_revision` is the project's."""
    subject = Subject.of_project(project.id)
    there = row_of(core, Binding, subject)
    if expected_revision not in (None, project.revision):
        with audit.attempted(core, actor, "binding.put", subject_text(subject)):
            raise _project_stale(project)
    if reference is None and there is not None:
        unbind(core, actor, subject, project_revision=expected_revision)
    elif reference is not None and (there is None or there.reference != reference):
        bind(core, actor, subject, Mode.PREFER, reference, project_revision=expected_revision)
    return find_project(core, project.id)


def bound(core: Core, subject: Subject) -> Binding:
    """The binding of this subject, or `not_found`."""
    row = row_of(core, Binding, subject)
    if row is None:
        raise RefusedError(Reason.NOT_FOUND, "it has no binding")
    return row


def own_scope(core: Core, actor: Actor, name: str) -> Lineage:
    """A scope that this key may know of, with its parents; or `scope_unknown`, whoever else's it is."""
    lineage = core.store.read(LineageOf(name))
    if actor.project is None or not visible(actor.project, actor.confinement, lineage):
        raise RefusedError(Reason.SCOPE_UNKNOWN, f"there is no scope {name}", details={"scope": name})
    return lineage


def named_agent(project: ProjectId, name: str) -> Subject:
    """An agent of the project: agents are not registered, any name of one will do."""
    if not is_agent_name(name):
        message = "an agent's name has letters, digits and . _ -, at most 63, and starts with no sign"
        raise RefusedError(Reason.INVALID_BODY, message, param="agent")
    return Subject.of_agent(project, name)


def own_agent(actor: Actor, project: ProjectId, name: str) -> Subject:
    """The same, or `not_found` when this key is not for it."""
    held = actor.confinement.agents
    if held is not None and name not in held:
        raise RefusedError(Reason.NOT_FOUND, "it has no binding")
    return named_agent(project, name)


def _permit(core: Core, actor: Actor, subject: Subject) -> Check:
    def check(there: Binding | None) -> None:
        if actor.project is None:
            return
        lineage = core.store.read(LineageOf(str(subject.name))) if subject.level is Level.SCOPE else ()
        refusal = may_bind(actor.project, actor.confinement, subject, lineage, there)
        if refusal is not None:
            raise RefusedError.of(refusal)

    return check


def _beside(core: Core, subject: Subject, expected: int | None) -> Callable[[], Sequence[Change]]:
    """A project's binding is shown as a part of the project: its revision rises, too."""

    def changes() -> Sequence[Change]:
        if subject.level is not Level.PROJECT:
            return ()
        project = find_project(core, str(subject.name))
        if expected not in (None, project.revision):
            raise _project_stale(project)
        return (ChangeProject(replace(project, revision=project.revision + 1)),)

    return changes


def _project_stale(project: Project) -> RefusedError:
    return RefusedError(
        Reason.REVISION_STALE,
        "the project has changed since you read it; read it again",
        param="expected_revision",
        details={"current": project.revision},
    )
