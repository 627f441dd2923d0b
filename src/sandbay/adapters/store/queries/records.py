"""Uploads and the audit."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.tables import audit, uploads
from sandbay.ports.records import AuditEntry, Upload
from sandbay.ports.store import Audit, ExpiredUploads, UploadOf

_UPLOADS = select(*columns_of(Upload, uploads))
_UPLOAD = _UPLOADS.where(uploads.c.id == bindparam("id"))
_EXPIRED = _UPLOADS.where(uploads.c.expires_at <= bindparam("now")).order_by(uploads.c.expires_at, uploads.c.id)
_AUDIT = select(*columns_of(AuditEntry, audit)).order_by(audit.c.seq.desc())


def _upload_of(connection: Connection, query: UploadOf) -> Upload | None:
    row = connection.execute(_UPLOAD, {"id": query.id}).first()
    return None if row is None else noun(Upload, row)


def _expired_uploads(connection: Connection, query: ExpiredUploads) -> Sequence[Upload]:
    return tuple(noun(Upload, row) for row in connection.execute(_EXPIRED, {"now": query.now}))


def _audit(connection: Connection, query: Audit) -> Sequence[AuditEntry]:
    statement = _AUDIT.limit(query.page.limit)
    if query.subject is not None:
        statement = statement.where(audit.c.subject == query.subject)
    if query.page.after is not None:
        seen = select(audit.c.seq).where(audit.c.id == query.page.after).scalar_subquery()
        statement = statement.where(audit.c.seq < seen)
    return tuple(noun(AuditEntry, row) for row in connection.execute(statement))


ANSWERS: Answers = {Audit: _audit, ExpiredUploads: _expired_uploads, UploadOf: _upload_of}
