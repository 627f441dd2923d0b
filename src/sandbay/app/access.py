"""Keys and projects: who may ask, and for whom."""

from collections.abc import Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.canonical import plain, sha256
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import KeyId, ProjectId
from sandbay.domain.project import KEY_PREFIXES, Key, KeyKind, Project
from sandbay.domain.reasons import Reason
from sandbay.domain.scope import UNCONFINED, Confinement, is_agent_name
from sandbay.ports.changes import AddKey, AddProject, ChangeProject, Conflict, RevokeKey
from sandbay.ports.standing import LineageOf
from sandbay.ports.store import KeyOf, Keys, ProjectOf, Projects


def authenticate(core: Core, secret: str, wanted: KeyKind, request_id: str | None = None) -> Actor:
    """The actor behind a secret. `invalid_api_key` for an unknown one, `forbidden` for the other kind's.

    Whoever is known and refused is in the audit.
    """
    key = core.store.read(KeyOf(sha256(secret.encode())))
    if key is None:
        raise _no_key()
    actor = Actor(key.principal, key.kind, key.project, request_id, key.confinement)
    try:
        _check_key(key, wanted)
    except RefusedError as error:
        audit.refused(core, actor, "access", key.id, error)
        raise
    return actor


def _check_key(key: Key, wanted: KeyKind) -> None:
    if key.revoked_at is not None:
        raise _no_key()
    if key.kind is not wanted:
        details = {"given": key.kind.value, "needed": wanted.value}
        raise RefusedError(Reason.FORBIDDEN, f"this needs {_article(wanted)} key", details=details)


def _no_key() -> RefusedError:
    return RefusedError(Reason.INVALID_API_KEY, "this API key is unknown or revoked")


def _article(kind: KeyKind) -> str:
    return "an administrator" if kind is KeyKind.ADMINISTRATOR else "a project"


def mint(
    core: Core,
    kind: KeyKind,
    name: str,
    principal: str,
    project: ProjectId | None = None,
    confinement: Confinement = UNCONFINED,
) -> tuple[Key, str]:
    """A key and its secret, not stored yet."""
    secret = core.ids.secret(KEY_PREFIXES[kind])
    key_id = KeyId(core.ids.new("key"))
    digest, now = sha256(secret.encode()), core.clock.now()
    return Key(key_id, kind, name, principal, digest, now, project, confinement=confinement), secret


def create_project(core: Core, actor: Actor, name: str) -> Project:
    """A new tenant. `name_taken` when there is one of this name."""
    project = Project(ProjectId(core.ids.new("project")), name, core.clock.now())
    try:
        core.store.apply(AddProject(project), audit.done(core, actor, "project.create", project.id, {"name": name}))
    except Conflict as conflict:
        raise RefusedError(Reason.NAME_TAKEN, f"there is a project {name}", param="name") from conflict
    return project


def find_project(core: Core, name_or_id: str) -> Project:
    """By name or id, or `not_found`."""
    project = core.store.read(ProjectOf(name_or_id))
    if project is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no project {name_or_id}")
    return project


def list_projects(core: Core) -> Sequence[Project]:
    """All, by name."""
    return core.store.read(Projects())


def list_keys(core: Core, project: Project) -> Sequence[Key]:
    """A project's keys, revoked ones too."""
    return core.store.read(Keys(project.id))


def create_key(
    core: Core,
    actor: Actor,
    project: Project,
    name: str,
    principal: str | None,
    confinement: Confinement = UNCONFINED,
) -> tuple[Key, str]:
    """A project key and its secret, which is shown this once. It is held to what `confinement` says, for good."""
    with audit.attempted(core, actor, "key.create", project.id):
        _check_confinement(core, project, confinement)
        key, secret = mint(core, KeyKind.PROJECT, name, principal or name, project.id, confinement)
        facts = {"project": project.id, "confinement": plain(confinement)}
        core.store.apply(AddKey(key), audit.done(core, actor, "key.create", key.id, facts))
    return key, secret


def _check_confinement(core: Core, project: Project, confinement: Confinement) -> None:
    if confinement.scope is not None:
        lineage = core.store.read(LineageOf(confinement.scope))
        if not lineage or any(it.project not in (None, project.id) for it in lineage):
            message = f"{project.name} has no scope {confinement.scope}"
            raise RefusedError(Reason.SCOPE_UNKNOWN, message, param="scope")
    strange = sorted(name for name in confinement.agents or () if not is_agent_name(name))
    if strange or confinement.agents == frozenset():
        message = "an agent's name has letters, digits and . _ -, at most 63, and starts with no sign; name one or more"
        raise RefusedError(Reason.INVALID_BODY, message, param="agents")


def revoke_key(core: Core, actor: Actor, project: Project, key: KeyId) -> None:
    """It works nowhere from now on."""
    try:
        core.store.apply(
            RevokeKey(key, core.clock.now(), project.id),
            audit.done(core, actor, "key.revoke", key, {"project": project.id}),
        )
    except Conflict as conflict:
        raise RefusedError(Reason.NOT_FOUND, f"{project.name} has no key {key}") from conflict


def change_project(
    core: Core, actor: Actor, project: Project, *, scope_required: bool | None, expected_revision: int | None
) -> Project:
    """Change what is given. A stale revision is refused."""
    wanted = project.scope_required if scope_required is None else scope_required
    changed = replace(project, scope_required=wanted, revision=(expected_revision or project.revision) + 1)
    facts = {"scope_required": {"from": project.scope_required, "to": wanted}}
    with audit.attempted(core, actor, "project.change", project.id):
        try:
            core.store.apply(ChangeProject(changed), audit.done(core, actor, "project.change", project.id, facts))
        except Conflict as conflict:
            raise revision_stale(conflict) from conflict
    return changed


def revision_stale(conflict: Conflict) -> RefusedError:
    """The refusal that names the current revision."""
    return RefusedError(
        Reason.REVISION_STALE,
        "it has changed since you read it; read it again",
        param="expected_revision",
        details={"current": conflict.current},
    )
