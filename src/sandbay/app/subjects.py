"""Whose word it is: subjects as people write them.

deployment · project:NAME · scope:KIND:REF · agent:PROJECT:NAME
"""

from collections.abc import Collection

from sandbay.app.access import find_project
from sandbay.app.core import Core
from sandbay.domain.errors import RefusedError
from sandbay.domain.path import DEPLOYMENT, Path, Subject
from sandbay.domain.reasons import Reason
from sandbay.domain.scope import Lineage, is_agent_name
from sandbay.domain.trail import Level
from sandbay.ports.standing import LineageOf
from sandbay.ports.store import ProjectOf

_FORMS = {
    Level.DEPLOYMENT: "deployment",
    Level.PROJECT: "project:NAME",
    Level.SCOPE: "scope:KIND:REF",
    Level.AGENT: "agent:PROJECT:NAME",
}


def find_subject(core: Core, text: str, levels: Collection[Level]) -> Subject:
    """What the text means, at one of these levels. Refuses with `invalid_body`, `not_found`, `scope_unknown`."""
    word, _, rest = text.partition(":")
    level = next((it for it in levels if it.value == word), None)
    if level is Level.DEPLOYMENT and text == "deployment":
        return DEPLOYMENT
    if level is Level.PROJECT:
        return Subject.of_project(find_project(core, rest).id)
    if level is Level.SCOPE:
        return Subject.of_scope(find_lineage(core, rest)[0].name)
    owner, _, name = rest.partition(":")
    if level is Level.AGENT and is_agent_name(name):
        return Subject.of_agent(find_project(core, owner).id, name)
    forms = [form for it, form in _FORMS.items() if it in levels]
    raise RefusedError(Reason.INVALID_BODY, f"this is one of {', '.join(forms)}", param="subject")


def find_lineage(core: Core, scope: str, param: str | None = None) -> Lineage:
    """A registered scope and its parents, narrowest first, or `scope_unknown`."""
    lineage = core.store.read(LineageOf(scope))
    if not lineage:
        raise RefusedError(Reason.SCOPE_UNKNOWN, f"there is no scope {scope}", param=param, details={"scope": scope})
    return lineage


def called(core: Core, subject: Subject) -> str:
    """The text that means it."""
    if subject.level is Level.DEPLOYMENT:
        return subject.level.value
    owner = subject.project if subject.level is Level.AGENT else subject.name
    if subject.level is Level.SCOPE:
        return f"{subject.level.value}:{subject.name}"
    project = core.store.read(ProjectOf(str(owner)))
    name = owner if project is None else project.name
    return f"{subject.level.value}:{name}" + (f":{subject.name}" if subject.level is Level.AGENT else "")


def path_of(core: Core, subject: Subject) -> Path:
    """Where whoever is bound by this subject's word stands at least: the subject and what is above it."""
    scopes: tuple[str, ...] = ()
    owner = subject.project
    if subject.level is Level.SCOPE:
        lineage = core.store.read(LineageOf(str(subject.name)))
        scopes = tuple(scope.name for scope in reversed(lineage))
        owner = lineage[0].project if lineage else None
    wanted = subject.name if subject.level is Level.PROJECT else owner
    project = None if wanted is None else core.store.read(ProjectOf(wanted))
    agent = subject.name if subject.level is Level.AGENT else None
    return Path(project.id, project.name, scopes, agent) if project else Path(scopes=scopes)
