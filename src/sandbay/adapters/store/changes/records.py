"""Uploads and the audit."""

from sqlalchemy import Connection, bindparam, delete, insert

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.rows import values_of
from sandbay.adapters.store.tables import audit, uploads
from sandbay.ports.changes import AddAudit, AddUpload, DropUpload

_ADD_AUDIT = insert(audit).inline()
_DROP_UPLOAD = delete(uploads).where(uploads.c.id == bindparam("key"))


def _add_upload(connection: Connection, change: AddUpload) -> None:
    connection.execute(insert(uploads), values_of(change.upload))


def _drop_upload(connection: Connection, change: DropUpload) -> None:
    connection.execute(_DROP_UPLOAD, {"key": change.id})


def _add_audit(connection: Connection, change: AddAudit) -> None:
    connection.execute(_ADD_AUDIT, values_of(change.entry))


WRITES: Writes = {AddAudit: _add_audit, AddUpload: _add_upload, DropUpload: _drop_upload}
