"""`/v1/secrets`: a project's secrets; `projects/{project}/secrets`: the same for administrators. Values only go in."""

from fastapi import APIRouter

from sandbay.api.calls import Name, TheActor, TheCore, ThePage, project_of
from sandbay.api.documented import refusing
from sandbay.api.strict import StrictRoute
from sandbay.api.wire.base import page
from sandbay.api.wire.secrets import SecretIn, SecretList, SecretOut, secret_out
from sandbay.app.access import find_project
from sandbay.app.secrets import drop_secret, list_secrets, put_secret
from sandbay.domain.reasons import Reason

router = APIRouter(prefix="/v1/secrets", route_class=StrictRoute, tags=["secrets"])
admin_router = APIRouter(prefix="/core/v1/projects/{project}/secrets", route_class=StrictRoute, tags=["secrets"])


@router.get("", responses=refusing())
def get_secrets(core: TheCore, actor: TheActor, asked: ThePage) -> SecretList:
    """List the names of the project's secrets."""
    shown, following = page(list_secrets(core, project_of(actor)), asked, lambda secret: secret.name)
    return SecretList(items=[secret_out(secret) for secret in shown], next=following)


@router.put("/{secret}", responses=refusing(Reason.LIMIT_REACHED))
def put_a_secret(core: TheCore, actor: TheActor, secret: Name, body: SecretIn) -> SecretOut:
    """Keep a secret, in place of the one of that name. Sessions have it from their next program on."""
    return secret_out(put_secret(core, actor, project_of(actor), secret, body.value))


@router.delete("/{secret}", status_code=204, responses=refusing(Reason.NOT_FOUND))
def delete_a_secret(core: TheCore, actor: TheActor, secret: Name) -> None:
    """Forget a secret. What a Session would run with it is refused from then on."""
    drop_secret(core, actor, project_of(actor), secret)


@admin_router.get("", responses=refusing(Reason.NOT_FOUND))
def get_any_secrets(core: TheCore, project: Name, asked: ThePage) -> SecretList:
    """List the names of a project's secrets."""
    shown, following = page(list_secrets(core, find_project(core, project).id), asked, lambda secret: secret.name)
    return SecretList(items=[secret_out(secret) for secret in shown], next=following)


@admin_router.put("/{secret}", responses=refusing(Reason.NOT_FOUND, Reason.LIMIT_REACHED))
def put_any_secret(core: TheCore, actor: TheActor, project: Name, secret: Name, body: SecretIn) -> SecretOut:
    """Keep a secret for a project, in place of the one of that name."""
    return secret_out(put_secret(core, actor, find_project(core, project).id, secret, body.value))


@admin_router.delete("/{secret}", status_code=204, responses=refusing(Reason.NOT_FOUND))
def delete_any_secret(core: TheCore, actor: TheActor, project: Name, secret: Name) -> None:
    """Forget a project's secret."""
    drop_secret(core, actor, find_project(core, project).id, secret)
