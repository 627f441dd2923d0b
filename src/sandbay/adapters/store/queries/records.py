"""Uploads, secrets of registries, and the audit."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.tables import audit, registry_secrets, secrets, uploads
from sandbay.domain.registry import RegistrySecret
from sandbay.domain.secret import Secret
from sandbay.ports.records import AuditEntry, Upload
from sandbay.ports.secrets import SecretsOf
from sandbay.ports.store import Audit, AuditInOrder, ExpiredUploads, RegistrySecretOf, RegistrySecrets, UploadOf

_UPLOADS = select(*columns_of(Upload, uploads))
_UPLOAD = _UPLOADS.where(uploads.c.id == bindparam("id"))
_EXPIRED = _UPLOADS.where(uploads.c.expires_at <= bindparam("now")).order_by(uploads.c.expires_at, uploads.c.id)
_SECRETS = select(*columns_of(RegistrySecret, registry_secrets)).order_by(registry_secrets.c.registry)
_SECRET = _SECRETS.where(registry_secrets.c.registry == bindparam("registry"))
_SECRETS_OF = (
    select(*columns_of(Secret, secrets)).where(secrets.c.project == bindparam("project_")).order_by(secrets.c.name)
)
_AUDIT = select(*columns_of(AuditEntry, audit)).order_by(audit.c.seq.desc())

_IN_ORDER = (
    select(audit.c.seq, *columns_of(AuditEntry, audit)).where(audit.c.seq > bindparam("after")).order_by(audit.c.seq)
)


def _upload_of(connection: Connection, query: UploadOf) -> Upload | None:
    row = connection.execute(_UPLOAD, {"id": query.id}).first()
    return None if row is None else noun(Upload, row)


def _expired_uploads(connection: Connection, query: ExpiredUploads) -> Sequence[Upload]:
    return tuple(noun(Upload, row) for row in connection.execute(_EXPIRED, {"now": query.now}))


def _registry_secret_of(connection: Connection, query: RegistrySecretOf) -> RegistrySecret | None:
    row = connection.execute(_SECRET, {"registry": query.registry}).first()
    return None if row is None else noun(RegistrySecret, row)


def _registry_secrets(connection: Connection, _query: RegistrySecrets) -> Sequence[RegistrySecret]:
    return tuple(noun(RegistrySecret, row) for row in connection.execute(_SECRETS))


def _secrets_of(connection: Connection, query: SecretsOf) -> Sequence[Secret]:
    return tuple(noun(Secret, row) for row in connection.execute(_SECRETS_OF, {"project_": query.project}))


def _audit(connection: Connection, query: Audit) -> Sequence[AuditEntry]:
    statement = _AUDIT.limit(query.page.limit)
    if query.subject is not None:
        statement = statement.where(audit.c.subject == query.subject)
    if query.page.after is not None:
        seen = select(audit.c.seq).where(audit.c.id == query.page.after).scalar_subquery()
        statement = statement.where(audit.c.seq < seen)
    return tuple(noun(AuditEntry, row) for row in connection.execute(statement))


def _audit_in_order(connection: Connection, query: AuditInOrder) -> Sequence[tuple[int, AuditEntry]]:
    rows = connection.execute(_IN_ORDER.limit(query.limit), {"after": query.after})
    return tuple((row[0], noun(AuditEntry, row, 1)) for row in rows)


ANSWERS: Answers = {
    Audit: _audit,
    AuditInOrder: _audit_in_order,
    ExpiredUploads: _expired_uploads,
    RegistrySecretOf: _registry_secret_of,
    RegistrySecrets: _registry_secrets,
    SecretsOf: _secrets_of,
    UploadOf: _upload_of,
}
