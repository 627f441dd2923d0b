"""`sandbox/registry-secrets`: what the installation says to registries. It goes in and never comes out."""

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore, ThePage
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.registries import (
    RegistrySecretIn,
    RegistrySecretList,
    RegistrySecretOut,
    registry_secret_out,
)
from sandbay.app.registries import drop_secret, list_secrets, put_secret
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/core/v1/sandbox/registry-secrets", route_class=StrictRoute, tags=["images"])


@router.get("", responses=refusing())
def get_registry_secrets(core: TheCore, asked: ThePage) -> RegistrySecretList:
    """List the registries that there is a secret for, by name."""
    shown, following = page(list_secrets(core), asked, lambda secret: secret.registry)
    return RegistrySecretList(items=[registry_secret_out(secret) for secret in shown], next=following)


@router.put("/{registry}", responses=refusing(Reason.INVALID_REFERENCE))
def put_registry_secret(core: TheCore, actor: TheActor, registry: Name, body: RegistrySecretIn) -> RegistrySecretOut:
    """Keep credentials for a registry (host[:port]), in place of those before. They are sealed at rest."""
    return registry_secret_out(put_secret(core, actor, registry, body.credentials()))


@router.delete("/{registry}", status_code=204, responses=refusing(Reason.INVALID_REFERENCE, Reason.NOT_FOUND))
def delete_registry_secret(core: TheCore, actor: TheActor, registry: Name) -> None:
    """Forget the credentials for a registry."""
    drop_secret(core, actor, registry)
