"""Load what the path can name, then resolve: the one way from a wish to a variant.

Admission, explain and the checks of Templates and bindings all come through here, so they cannot differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sandbay.app.core import Core
from sandbay.domain.binding import Binding
from sandbay.domain.ceiling import NOTHING_STANDS, Standing
from sandbay.domain.choosing import Rejected, Request, Selected
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import NOWHERE, Path
from sandbay.domain.platform import Platform
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import DEFAULT, ImageReference, OfDefault, OfImage, OfRelease, parse_image
from sandbay.domain.requirement import Required, Requirement, parse_requirement
from sandbay.domain.scope import UNCONFINED, Confinement
from sandbay.domain.template import Template
from sandbay.domain.trail import Level, Policy, Saying
from sandbay.flow.freeze import freeze
from sandbay.flow.locate import ANYWHERE, Whereabouts, locate
from sandbay.flow.resolve import resolve
from sandbay.flow.upgrade import upgrade_available
from sandbay.ports.standing import LineageOf, StandingOf
from sandbay.ports.store import CatalogOf, ProjectOf, TheDeployment

ADMITTING = Policy()
WRITING = Policy(support_may_wait=True)
BUILDING = Policy(ceilings=False)
"""For a Session; for what Sessions will read later; for the base of a build, which is nobody's Session."""


@dataclass(frozen=True)
class Selection:
    """What was decided, the deployment that it was decided under, and where."""

    outcome: Selected | Rejected
    deployment: Deployment
    path: Path = NOWHERE

    def frozen(self) -> FrozenRelease:
        """What a Session of it keeps. Raises the refusal when there is none."""
        chosen = self.outcome
        if isinstance(chosen, Rejected):
            raise RefusedError.of(chosen.refusal)
        return freeze(
            chosen.entry.image,
            chosen.release,
            chosen.variant,
            reference=chosen.reference,
            decided_by=chosen.decided_by,
            trail=chosen.trail,
            generation=self.deployment.generation,
            tools=chosen.tools,
        )


@dataclass(frozen=True)
class Wish:
    """What a Session asks of its image, itself and through its Template; where it acts, and what its key is held to."""

    reference: str | None = None
    platform: str | None = None
    template: Template | None = None
    requires: Sequence[Requirement] = ()
    whereabouts: Whereabouts = ANYWHERE
    key: Confinement = UNCONFINED


NO_WISH = Wish()


def select(core: Core, project: ProjectId, wish: Wish) -> Selection:
    """Resolve a hypothetical or real Session of this project. Raises when there is no such place for it to act in."""
    path = _path(core, _project(core, project), wish)
    return _resolve(core, path, _standing(core, path), [wish], ADMITTING)[0]


def select_templates(core: Core, project: ProjectId, templates: Sequence[Template]) -> Sequence[Selection]:
    """What Sessions of these Templates alone would run in the project, in one look at the catalog."""
    its = _project(core, project)
    path = Path(its.id, its.name)
    return _resolve(core, path, _standing(core, path), [Wish(template=it) for it in templates], WRITING)


def select_bound(core: Core, path: Path, binding: Binding) -> Selection:
    """What a Session without a wish of its own would get there if this binding stood alone, under what holds there."""
    alone = replace(_standing(core, path), bindings={binding.subject: binding})
    return _resolve(core, path, alone, [NO_WISH], WRITING)[0]


def select_base(core: Core, reference: str, platform: Platform) -> Selection:
    """What an image would be built on that names this: the same checks as for a Session, with nobody's wish behind."""
    wish = Wish(reference, str(platform))
    return _resolve(core, NOWHERE, NOTHING_STANDS, [wish], BUILDING)[0]


def upgrades(core: Core, words: Sequence[str]) -> Mapping[str, str]:
    """Which of these references are pinned to a release that the stable channel has left behind → where it is now."""
    catalog = core.store.read(_catalog_of(words, current_deployment(core)))
    newer = {word: upgrade_available(word, catalog) for word in words}
    return {word: found for word, found in newer.items() if found is not None}


def _project(core: Core, project: ProjectId) -> Project:
    asked = core.store.read(ProjectOf(project))
    if asked is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no project {project}")
    return asked


def _path(core: Core, project: Project, wish: Wish) -> Path:
    name = wish.whereabouts.within(wish.key)
    lineage = () if name is None else core.store.read(LineageOf(name))
    path = locate(project, wish.whereabouts, lineage, wish.key)
    if isinstance(path, Refusal):
        raise RefusedError.of(path)
    return path


def _standing(core: Core, path: Path) -> Standing:
    return core.store.read(StandingOf(frozenset(path.subjects)))


def current_deployment(core: Core) -> Deployment:
    """The current generation. An installation without one is a fault."""
    deployment = core.store.read(TheDeployment())
    if deployment is None:
        msg = "the installation has no deployment"
        raise LookupError(msg)
    return deployment


def _resolve(core: Core, path: Path, standing: Standing, wishes: Sequence[Wish], policy: Policy) -> Sequence[Selection]:
    now = current_deployment(core)
    requests = [request_of(wish, now) for wish in wishes]
    said = [word.reference for request in requests for word in request.wishes if word.reference is not None]
    standing_words = [binding.reference for binding in standing.bindings.values()]
    catalog = core.store.read(_catalog_of([*said, *standing_words, DEFAULT], now))
    return [Selection(resolve(request, path, standing, policy, catalog, now), now, path) for request in requests]


def request_of(wish: Wish, now: Deployment) -> Request:
    """As `resolve` takes it. Without a Template there is no such level; one that names no image is silent."""
    it = wish.template
    of_template = () if it is None else (Saying(Level.TEMPLATE, it.name, it.content.runtime_image_id),)
    wishes = (Saying(Level.SESSION, None, wish.reference), *of_template)
    return Request(wishes, _platform(wish) or now.default_platform, _required(wish))


def _required(wish: Wish) -> Sequence[Required]:
    """The request's own, then the Template's, then those of its skills."""
    own = [Required(it) for it in wish.requires]
    if wish.template is None:
        return own
    name, content = wish.template.name, wish.template.content
    fields = [("requires", content.requires), *((f"skills.{n}", it.requires) for n, it in enumerate(content.skills))]
    said = ((parse_requirement(text), field) for field, texts in fields for text in texts)
    # What is written has been read: there is nothing else among them.
    return [*own, *(Required(it, Level.TEMPLATE, field, name) for it, field in said if isinstance(it, Requirement))]


def _platform(wish: Wish) -> Platform | None:
    """The request's, else the Template's, which was looked at when that was written."""
    asked = wish.platform or (wish.template.content.platform if wish.template else None)
    if asked is None:
        return None
    platform = Platform.parse(asked)
    if platform is None:
        raise RefusedError(Reason.INVALID_BODY, f"{asked!r} is no platform such as linux/amd64", param="platform")
    return platform


def _catalog_of(words: Iterable[str], deployment: Deployment) -> CatalogOf:
    """Only what these words can name is loaded: the cost grows with the levels, not with the catalog."""
    references = [parse_image(word) for word in words]
    names = {name for r in references if (name := _names(r, deployment)) is not None}
    return CatalogOf(frozenset(names), frozenset(r.release for r in references if isinstance(r, OfRelease)))


def _names(reference: ImageReference | object, deployment: Deployment) -> str | None:
    match reference:
        case OfImage(image, _):
            return image
        case OfDefault():
            return deployment.default_image
        case _:
            return None
