"""What would change if a binding, an allow-list, a channel or a retirement were written: asked before it is.

Everybody whose Sessions are told apart by what they name alone is asked twice, in the installation as it is and as it
would be, by the same decision that admits Sessions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sandbay.app.core import Core
from sandbay.app.select import NO_WISH, WRITING, Wish, current_deployment, request_of
from sandbay.domain.binding import Binding
from sandbay.domain.catalog import CatalogView
from sandbay.domain.ceiling import AllowListAt, Grant, OverrideAt, Standing
from sandbay.domain.deployment import Deployment
from sandbay.domain.ids import ImageId, ProjectId
from sandbay.domain.impact import Answer, Asker, AskerKind, BindingWritten, Impact, Supposition
from sandbay.domain.path import Path, Subject
from sandbay.domain.project import Project
from sandbay.domain.scope import Scope, lineage_of
from sandbay.domain.trail import Level
from sandbay.flow.impact import Installed, answer_of, impacts, suppose, touches
from sandbay.flow.resolve import resolve
from sandbay.ports.records import Page
from sandbay.ports.standing import RowsOf, RowT, Scopes, key_of
from sandbay.ports.store import Images, Projects, Query, Templates

_AT_ONCE = 500
_Row = TypeVar("_Row")


def what_if(core: Core, what: Supposition, project: ProjectId | None = None) -> Sequence[Impact]:
    """Whose answers would change, from what to what; of one project's only when given.

    Asked are Sessions that name nothing but a Template, an agent that has a binding, a scope, or nothing at all.
    """
    now = current_deployment(core)
    there = Installed(CatalogView(tuple(core.store.read(Images()))), _standing(core))
    agents = {subject for subject in there.standing.bindings if subject.level is Level.AGENT}
    if isinstance(what, BindingWritten) and what.subject.level is Level.AGENT:
        agents.add(what.subject)
    projects = [it for it in core.store.read(Projects()) if project in (None, it.id)]
    wishes = {asker: wish for asker, wish in _askers(core, projects, agents) if touches(what, asker)}
    before, after = (_answers(wishes, it, now) for it in (there, suppose(there, what)))
    return impacts(before, after)


def _askers(core: Core, projects: Sequence[Project], agents: Iterable[Subject]) -> Iterator[tuple[Asker, Wish]]:
    """Projects by name, each with its Templates and agents; then scopes."""
    for project in projects:
        path = Path(project.id, project.name)
        yield Asker(AskerKind.PROJECT, project.name, path), NO_WISH
        for template in _all(core, partial(Templates, project.id), lambda it: it.name):
            yield Asker(AskerKind.TEMPLATE, template.name, path), Wish(template=template)
        for name in sorted(str(agent.name) for agent in agents if agent.project == project.id):
            yield Asker(AskerKind.AGENT, name, Path(project.id, project.name, (), name)), NO_WISH
    scopes = {scope.name: scope for scope in _all(core, lambda page: Scopes(page=page), lambda it: it.name)}
    owners = {project.id: project for project in projects}
    for scope in scopes.values():
        if scope.project is None or scope.project in owners:
            yield Asker(AskerKind.SCOPE, scope.name, _path(scope, scopes, owners)), NO_WISH


def _path(scope: Scope, scopes: Mapping[str, Scope], owners: Mapping[ProjectId, Project]) -> Path:
    """Of a scope that is for every project, what holds for all of them."""
    names = tuple(it.name for it in reversed(lineage_of(scope.name, scopes)))
    owner = None if scope.project is None else owners[scope.project]
    return Path(scopes=names) if owner is None else Path(owner.id, owner.name, names)


def _answers(wishes: Mapping[Asker, Wish], it: Installed, now: Deployment) -> Mapping[Asker, Answer]:
    def answer(asker: Asker, wish: Wish) -> Answer:
        return answer_of(resolve(request_of(wish, now), asker.path, it.standing, WRITING, it.catalog, now))

    return {asker: answer(asker, wish) for asker, wish in wishes.items()}


def _standing(core: Core) -> Standing:
    """All rows there are."""

    def every(kind: type[RowT]) -> Iterator[RowT]:
        return _all(core, lambda page: RowsOf(kind, page=page), key_of)

    grants: dict[Subject, frozenset[ImageId]] = {}
    for grant in every(Grant):
        grants[grant.subject] = grants.get(grant.subject, frozenset()) | {grant.image}
    return Standing(
        {row.subject: row for row in every(Binding)},
        {row.subject: row.allowed for row in every(AllowListAt)},
        {row.subject: row.override for row in every(OverrideAt)},
        grants,
    )


def _all(core: Core, asked: Callable[[Page], Query[Sequence[_Row]]], cursor: Callable[[_Row], str]) -> Iterator[_Row]:
    """Every row, page by page."""
    page = Page(limit=_AT_ONCE)
    while rows := core.store.read(asked(page)):
        yield from rows
        page = Page(cursor(rows[-1]), _AT_ONCE)
