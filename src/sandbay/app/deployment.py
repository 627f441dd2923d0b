"""The deployment: show it, and write a new generation of it."""

from collections.abc import Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.select import current_deployment
from sandbay.domain.deployment import Deployment, Pool
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ImageId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.ports.changes import Conflict, ConflictKind, SetDeployment
from sandbay.ports.store import CatalogOf


def set_deployment(
    core: Core,
    actor: Actor,
    *,
    expected: int,
    default_image: str | None,
    default_platform: Platform,
    pools: Sequence[Pool],
) -> Deployment:
    """Write a generation. An identical one changes nothing; a stale `expected` is refused with the current one."""
    now = current_deployment(core)
    if now.generation != expected:
        raise _stale(now.generation)
    for pool in pools:
        _check_pool(core, pool)
    wanted = Deployment(expected, default_platform, tuple(pools), _image_id(core, default_image))
    if wanted == now:
        return now
    changed = replace(wanted, generation=expected + 1)
    try:
        core.store.apply(
            SetDeployment(changed, expected),
            audit.done(core, actor, "deployment.set", f"generation {changed.generation}"),
        )
    except Conflict as conflict:
        if conflict.kind is ConflictKind.IN_USE:
            raise RefusedError(
                Reason.IN_USE,
                "a pool that would go or change has Sessions",
                param="pools",
                details={"by": conflict.current},
            ) from conflict
        raise _stale(conflict.current) from conflict
    core.changed.set()
    return changed


def _check_pool(core: Core, pool: Pool) -> None:
    declaration = core.declarations.get(pool.provider)
    if declaration is None:
        raise RefusedError(
            Reason.PROVIDER_UNKNOWN,
            f"no provider {pool.provider!r} is installed",
            param="pools",
            details={"pool": pool.name, "installed": sorted(core.declarations)},
        )


def _image_id(core: Core, name: str | None) -> ImageId | None:
    if name is None:
        return None
    entry = core.store.read(CatalogOf(frozenset({name}))).image(name)
    if entry is None:
        raise RefusedError(Reason.IMAGE_UNKNOWN, f"there is no image {name}", param="default_image")
    return entry.image.id


def _stale(current: object) -> RefusedError:
    return RefusedError(
        Reason.GENERATION_STALE,
        "the deployment has changed since you read it; read it again",
        param="expected_generation",
        details={"current": current},
    )
