"""Projects and keys."""

from sqlalchemy import Connection, bindparam, func, insert, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_taken, replace_next, value_there
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import keys, projects
from sandbay.ports.changes import AddKey, AddProject, ChangeProject, Conflict, ConflictKind, RevokeKey

_BY_NAME = select(projects.c.id).where(projects.c.name == bindparam("name"))
_REVISION = select(projects.c.revision).where(projects.c.id == bindparam("key"))
_UPDATE_PROJECT = (
    update(projects)
    .where(projects.c.id == bindparam("key"))
    .values(scope_required=bindparam("scope_required"), revision=bindparam("revision"))
)
_KEY_BY_HASH = select(keys.c.id).where(keys.c.hash == bindparam("hash"))
_KEY_OWNER = select(keys.c.project).where(keys.c.id == bindparam("key"))
_REVOKE = (
    update(keys)
    .where(keys.c.id == bindparam("key"))
    .values(revoked_at=func.coalesce(keys.c.revoked_at, bindparam("at", type_=keys.c.revoked_at.type)))
)


def _add_project(connection: Connection, change: AddProject) -> None:
    refuse_taken(connection, _BY_NAME, {"name": change.project.name}, change)
    connection.execute(insert(projects), values_of(change.project))


def _change_project(connection: Connection, change: ChangeProject) -> None:
    project = change.project
    values = {"key": project.id, "scope_required": project.scope_required, "revision": project.revision}
    replace_next(connection, _REVISION, _UPDATE_PROJECT, values, change)


def _add_key(connection: Connection, change: AddKey) -> None:
    refuse_taken(connection, _KEY_BY_HASH, {"hash": change.key.hash}, change)
    connection.execute(insert(keys), values_of(change.key))


def _revoke_key(connection: Connection, change: RevokeKey) -> None:
    owner = value_there(connection, _KEY_OWNER, {"key": change.key}, change)
    if change.project not in (None, owner):
        raise Conflict(change, ConflictKind.MISSING)
    connection.execute(_REVOKE, {"key": change.key, "at": change.at})


WRITES: Writes = {AddKey: _add_key, AddProject: _add_project, ChangeProject: _change_project, RevokeKey: _revoke_key}
