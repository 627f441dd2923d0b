"""Projects' secrets: put, listed by name, given to Sessions as variables, never told.

Their values are read when a program starts, so that a Session has what is kept now: nothing of them is frozen, and
neither a node's disk nor a snapshot holds them.
"""

from collections.abc import Mapping, Sequence

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ProjectId
from sandbay.domain.reasons import Reason
from sandbay.domain.scope import UNCONFINED
from sandbay.domain.secret import SECRETS, Secret, is_secret_name
from sandbay.domain.session import Session
from sandbay.ports.changes import Conflict, ConflictKind
from sandbay.ports.secrets import DropSecret, PutSecret, SecretsOf


def put_secret(core: Core, actor: Actor, project: ProjectId, name: str, value: str) -> Secret:
    """Keep it under this name, in place of what was kept before; Sessions have it from their next program on."""
    _refuse_confined(actor)
    if not is_secret_name(name):
        message = "a secret's name has letters, digits and _.-, at most 128, and begins with a letter or a digit"
        raise RefusedError(Reason.INVALID_BODY, message, param="name")
    blank = Secret(project, name, "", core.clock.now())
    secret = Secret(project, name, core.vault.seal(value.encode(), blank.context), blank.updated_at)
    told = audit.done(core, actor, "secret.put", name, {"project": project})
    try:
        core.store.apply(PutSecret(secret, SECRETS), told)
    except Conflict as conflict:
        if conflict.kind is not ConflictKind.LIMIT:
            raise
        message = f"a project has at most {SECRETS} secrets"
        raise RefusedError(Reason.LIMIT_REACHED, message, details={"limit": SECRETS}) from conflict
    return secret


def list_secrets(core: Core, project: ProjectId) -> Sequence[Secret]:
    """By name."""
    return core.store.read(SecretsOf(project))


def drop_secret(core: Core, actor: Actor, project: ProjectId, name: str) -> None:
    """Forget it. `not_found` when there is none."""
    _refuse_confined(actor)
    try:
        core.store.apply(
            DropSecret(project, name), audit.done(core, actor, "secret.delete", name, {"project": project})
        )
    except Conflict as conflict:
        raise RefusedError(Reason.NOT_FOUND, f"there is no secret {name}") from conflict


def refuse_unknown(core: Core, project: ProjectId, wanted: Mapping[str, str]) -> None:
    """Variable → secret's name; refuses with `secret_unknown` the first that the project does not have."""
    if not wanted:
        return
    known = {secret.name for secret in core.store.read(SecretsOf(project))}
    for variable, name in wanted.items():
        if name not in known:
            raise _unknown(variable, name, "env")


def secret_variables(core: Core, session: Session) -> Mapping[str, str]:
    """What its programs have in their environment of its project's secrets, as they are now.

    Refuses with `secret_unknown` where one has been deleted: a program without it is not what was asked for.
    """
    if not session.secret_env:
        return {}
    kept = {secret.name: secret for secret in core.store.read(SecretsOf(session.project))}
    values = {}
    for variable, name in session.secret_env.items():
        if name not in kept:
            raise _unknown(variable, name, None)
        values[variable] = core.vault.unseal(kept[name].sealed, kept[name].context).decode()
    return values


def _unknown(variable: str, name: str, param: str | None) -> RefusedError:
    message = f"the project has no secret {name}, which {variable} is to hold"
    return RefusedError(Reason.SECRET_UNKNOWN, message, param=param, details={"variable": variable, "secret": name})


def _refuse_confined(actor: Actor) -> None:
    """A secret is the whole project's."""
    if actor.confinement != UNCONFINED:
        raise RefusedError(Reason.FORBIDDEN, "secrets are the whole project's, and this key is held to a part of it")
