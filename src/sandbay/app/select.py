"""Load what the path can name, then resolve: the one way from a wish to a variant.

Admission, explain and the check of a project's preference all come through here, so they cannot differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sandbay.app.core import Core
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ProjectId
from sandbay.domain.platform import Platform
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import DEFAULT, ImageReference, OfDefault, OfImage, OfRelease, parse_image
from sandbay.domain.requirement import Required
from sandbay.domain.trail import Level, Policy, Saying
from sandbay.flow.resolve import Rejected, Selected, resolve
from sandbay.ports.store import CatalogOf, ProjectOf, TheDeployment


@dataclass(frozen=True)
class Selection:
    """What was decided, and the deployment that it was decided under."""

    outcome: Selected | Rejected
    deployment: Deployment


def select(
    core: Core,
    project: ProjectId,
    reference: str | None,
    platform: str | None,
    required: Iterable[Required] = (),
) -> Selection:
    """Resolve a hypothetical or real Session of this project."""
    asked = core.store.read(ProjectOf(project))
    if asked is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no project {project}")
    return _resolve(core, _sayings(asked, reference), platform, required)


def select_for_project(core: Core, project: Project, reference: str) -> Selection:
    """What a Session without a wish of its own would get if the project preferred this."""
    return _resolve(core, (Saying(Level.PROJECT, project.name, reference),), None)


def select_base(core: Core, reference: str, platform: Platform) -> Selection:
    """What an image would be built on that names this: the same checks as for a Session, with nobody's wish behind."""
    return _resolve(core, (Saying(Level.DEPLOYMENT, None, reference),), str(platform))


def current_deployment(core: Core) -> Deployment:
    """The current generation. An installation without one is a fault."""
    deployment = core.store.read(TheDeployment())
    if deployment is None:
        msg = "the installation has no deployment"
        raise LookupError(msg)
    return deployment


def _sayings(project: Project, reference: str | None) -> tuple[Saying, ...]:
    return (
        Saying(Level.SESSION, None, reference),
        Saying(Level.PROJECT, project.name, project.runtime_image_id),
    )


def _resolve(
    core: Core, sayings: Iterable[Saying], platform: str | None, required: Iterable[Required] = ()
) -> Selection:
    deployment = current_deployment(core)
    default = DEFAULT if deployment.default_image is not None else None
    said = (*sayings, Saying(Level.DEPLOYMENT, None, default))
    catalog = core.store.read(_catalog_of(said, deployment))
    outcome = resolve(said, _platform(platform, deployment), Policy(), catalog, deployment, required)
    return Selection(outcome, deployment)


def _platform(asked: str | None, deployment: Deployment) -> Platform:
    if asked is None:
        return deployment.default_platform
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
