"""`sandbox/deployment`: where sandboxes run."""

from fastapi import APIRouter

from sandbay.api.calls import TheActor, TheCore
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.deployment import DeploymentIn, DeploymentOut, deployment_out, platform_of
from sandbay.app.core import Core
from sandbay.app.deployment import set_deployment
from sandbay.app.images import find_image
from sandbay.app.select import current_deployment
from sandbay.domain.deployment import Deployment
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/deployment", route_class=StrictRoute, tags=["deployment"])


def _shown(core: Core, deployment: Deployment) -> DeploymentOut:
    default = deployment.default_image
    return deployment_out(deployment, None if default is None else find_image(core, default).image.name)


@router.get("", responses=refusing())
def get_deployment(core: TheCore) -> DeploymentOut:
    """Show the current generation."""
    return _shown(core, current_deployment(core))


@router.put(
    "",
    responses=refusing(Reason.GENERATION_STALE, Reason.IMAGE_UNKNOWN, Reason.PROVIDER_UNKNOWN, Reason.IN_USE),
)
def put_deployment(core: TheCore, actor: TheActor, body: DeploymentIn) -> DeploymentOut:
    """Write a new generation. An identical one changes nothing."""
    changed = set_deployment(
        core,
        actor,
        expected=body.expected_generation,
        default_image=body.default_image,
        default_platform=platform_of(body.default_platform),
        pools=[pool.pool() for pool in body.pools],
    )
    return _shown(core, changed)
