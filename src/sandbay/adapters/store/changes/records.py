"""Uploads, secrets of registries, and the audit."""

from sqlalchemy import Connection, bindparam, delete, insert

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.prepared import Prepared
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import audit, registry_secrets, uploads
from sandbay.ports.changes import (
    AddAudit,
    AddUpload,
    Conflict,
    ConflictKind,
    DropRegistrySecret,
    DropUpload,
    PutRegistrySecret,
)

_ADD_AUDIT = Prepared(insert(audit).inline())
_DROP_SECRET = delete(registry_secrets).where(registry_secrets.c.registry == bindparam("key"))
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


def _add_audit(connection: Connection, change: AddAudit) -> None:
    _ADD_AUDIT(connection, values_of(change.entry))


WRITES: Writes = {
    AddAudit: _add_audit,
    AddUpload: _add_upload,
    DropRegistrySecret: _drop_registry_secret,
    DropUpload: _drop_upload,
    PutRegistrySecret: _put_registry_secret,
}
