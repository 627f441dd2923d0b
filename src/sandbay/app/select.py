"""Load what the path can name, then resolve: the one way from a wish to a variant.

Admission, explain and the check of a project's preference all come through here, so they cannot differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandbay.app.core import Core
from sandbay.domain.binding import Binding
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import RefusedError
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import Path, Subject
from sandbay.domain.platform import Platform
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import DEFAULT, ImageReference, OfDefault, OfImage, OfRelease, parse_image
from sandbay.domain.requirement import Required, Requirement, parse_requirement
from sandbay.domain.template import Template
from sandbay.domain.trail import Level, Policy, Saying
from sandbay.flow.freeze import freeze
from sandbay.flow.resolve import Rejected, Selected, resolve
from sandbay.ports.standing import StandingOf
from sandbay.ports.store import CatalogOf, ProjectOf, TheDeployment

ADMITTING = Policy()


@dataclass(frozen=True)
class Selection:
    """What was decided, and the deployment that it was decided under."""

    outcome: Selected | Rejected
    deployment: Deployment

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
    """What a Session asks of its image, itself and through its Template."""

    reference: str | None = None
    platform: str | None = None
    template: Template | None = None
    requires: Sequence[Requirement] = ()


def select(core: Core, project: ProjectId, wish: Wish, policy: Policy = ADMITTING) -> Selection:
    """Resolve a hypothetical or real Session of this project."""
    return select_each(core, project, [wish], policy)[0]


def select_each(
    core: Core, project: ProjectId, wishes: Sequence[Wish], policy: Policy = ADMITTING
) -> Sequence[Selection]:
    """Resolve several Sessions of this project in one look at the catalog."""
    asked = core.store.read(ProjectOf(project))
    if asked is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no project {project}")
    return _resolve(core, [(_sayings(core, asked, wish), _platform(wish), _required(wish)) for wish in wishes], policy)


def select_bound(core: Core, path: Path, binding: Binding) -> Selection:
    """What a Session without a wish of its own would get there if this binding stood alone."""
    said = Saying(binding.subject.level, path.told(binding.subject), binding.reference)
    return _resolve(core, [((said,), None, ())], ADMITTING)[0]


def select_base(core: Core, reference: str, platform: Platform) -> Selection:
    """What an image would be built on that names this: the same checks as for a Session, with nobody's wish behind."""
    return _resolve(core, [((Saying(Level.DEPLOYMENT, None, reference),), platform, ())], ADMITTING)[0]


def current_deployment(core: Core) -> Deployment:
    """The current generation. An installation without one is a fault."""
    deployment = core.store.read(TheDeployment())
    if deployment is None:
        msg = "the installation has no deployment"
        raise LookupError(msg)
    return deployment


def _sayings(core: Core, project: Project, wish: Wish) -> tuple[Saying, ...]:
    """A Session without a Template has no such level; a Template that names no image is silent."""
    it = wish.template
    of_template = () if it is None else (Saying(Level.TEMPLATE, it.name, it.content.runtime_image_id),)
    subject = Subject.of_project(project.id)
    bound = core.store.read(StandingOf(frozenset({subject}))).bindings.get(subject)
    of_project = Saying(Level.PROJECT, project.name, None if bound is None else bound.reference)
    return (Saying(Level.SESSION, None, wish.reference), *of_template, of_project)


def _resolve(
    core: Core, asked: Sequence[tuple[tuple[Saying, ...], Platform | None, Sequence[Required]]], policy: Policy
) -> Sequence[Selection]:
    now = current_deployment(core)
    default = Saying(Level.DEPLOYMENT, None, DEFAULT if now.default_image is not None else None)
    said = [*(saying for sayings, *_ in asked for saying in sayings), default]
    catalog = core.store.read(_catalog_of(said, now))
    return [
        Selection(resolve((*sayings, default), platform or now.default_platform, policy, catalog, now, required), now)
        for sayings, platform, required in asked
    ]


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


def _catalog_of(sayings: Iterable[Saying], deployment: Deployment) -> CatalogOf:
    """Only what these words can name is loaded: the cost grows with the levels, not with the catalog."""
    references = [parse_image(s.reference) for s in sayings if s.reference is not None]
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
