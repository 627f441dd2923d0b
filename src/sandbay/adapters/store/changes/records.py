"""Uploads, secrets, and the audit."""

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_beyond
from sandbay.adapters.store.prepared import Prepared
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import audit, registry_secrets, secrets, uploads
from sandbay.ports.changes import (
    AddAudit,
    AddUpload,
    Conflict,
    ConflictKind,
    DropRegistrySecret,
    DropUpload,
    PutRegistrySecret,
)
from sandbay.ports.secrets import DropSecret, PutSecret

_ADD_AUDIT = Prepared(insert(audit).inline())
_DROP_SECRET = delete(registry_secrets).where(registry_secrets.c.registry == bindparam("key"))
_DROP_OWN_SECRET = delete(secrets).where(
    secrets.c.project == bindparam("project_"), secrets.c.name == bindparam("name_")
)
_COUNT_SECRETS = select(func.count()).select_from(secrets).where(secrets.c.project == bindparam("project_"))
_DROP_UPLOAD = delete(uploads).where(uploads.c.id == bindparam("key"))


def _add_upload(connection: Connection, change: AddUpload) -> None:
    connection.execute(insert(uploads), values_of(change.upload))


def _drop_upload(connection: Connection, change: DropUpload) -> None:
    connection.execute(_DROP_UPLOAD, {"key": change.id})


def _put_registry_secret(connection: Connection, change: PutRegistrySecret) -> None:
    connection.execute(_DROP_SECRET, {"key": change.secret.registry})
    connection.execute(insert(registry_secrets), values_of(change.secret))


def _drop_registry_secret(connection: Connection, change: DropRegistrySecret) -> None:
    if not connection.execute(_DROP_SECRET, {"key": change.registry}).rowcount:
        raise Conflict(change, ConflictKind.MISSING)


def _put_secret(connection: Connection, change: PutSecret) -> None:
    secret = change.secret
    connection.execute(_DROP_OWN_SECRET, {"project_": secret.project, "name_": secret.name})
    count = connection.execute(_COUNT_SECRETS, {"project_": secret.project}).scalar_one()
    refuse_beyond(change.limit, count, change)
    connection.execute(insert(secrets), values_of(secret))


def _drop_secret(connection: Connection, change: DropSecret) -> None:
    if not connection.execute(_DROP_OWN_SECRET, {"project_": change.project, "name_": change.name}).rowcount:
        raise Conflict(change, ConflictKind.MISSING)


def _add_audit(connection: Connection, change: AddAudit) -> None:
    _ADD_AUDIT(connection, values_of(change.entry))


WRITES: Writes = {
    AddAudit: _add_audit,
    AddUpload: _add_upload,
    DropRegistrySecret: _drop_registry_secret,
    DropSecret: _drop_secret,
    DropUpload: _drop_upload,
    PutRegistrySecret: _put_registry_secret,
    PutSecret: _put_secret,
}
