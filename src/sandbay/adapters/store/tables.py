"""The tables. `Table.info` says what of them the database itself refuses to change; `triggers` makes it so.

`frozen`: these columns (`"*"`: all) keep what was inserted, and a row is not inserted over. `kept`: rows are
never deleted. `sealed_by`: no row is added any more once that table has one of the same `release`.
Columns are named as the fields of the nouns that they hold.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from sandbay.adapters.store.columns import JSON_VALUE, Plain, UtcTime, Word
from sandbay.domain.allocation import AllocationState
from sandbay.domain.catalog import ImageState
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Pool, SandboxSize
from sandbay.domain.platform import Platform
from sandbay.domain.project import KeyKind
from sandbay.domain.publish import Inputs, PublishOrder, PublishPhase
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.release import Fault, ReleaseState
from sandbay.domain.session import SessionState, WaitingFor
from sandbay.domain.template import Preparation, TemplateMark

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

APPEND_ONLY: dict[str, Any] = {"frozen": "*", "kept": True}


def _keeps(*frozen: str) -> dict[str, Any]:
    return {"frozen": frozen, "kept": True}


def _table(name: str, *items: Any, info: dict[str, Any] | None = None) -> Table:
    """Without a hidden rowid, over which SQLite could replace a row whatever its key."""
    return Table(name, METADATA, *items, info=info or {}, sqlite_with_rowid=False)


def _sequence() -> Column[int]:
    """The order of insertion, for what is listed newest first. In SQLite it is the rowid."""
    return Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def _text(name: str, *more: Any, **options: Any) -> Column[str]:
    return Column(name, String, *more, nullable=options.pop("nullable", False), **options)


def _fault() -> Column[Any]:
    return Column("fault", Plain(Fault))


def _time(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, UtcTime, nullable=nullable)


def _integer(name: str, **options: Any) -> Column[int]:
    return Column(name, Integer, nullable=False, **options)


def _bytes(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _json(name: str) -> Column[Any]:
    return Column(name, JSON_VALUE, nullable=False)


images = _table(
    "images",
    _text("id", primary_key=True),
    _text("name", unique=True),
    _time("created_at"),
    _text("description"),
    _json("labels"),
    Column("state", Word(ImageState), nullable=False),
    _integer("revision"),
    info=_keeps("id", "name", "created_at"),
)

releases = _table(
    "releases",
    _text("id", primary_key=True),
    _text("image", ForeignKey("images.id")),
    _integer("number"),
    _text("source_commit", nullable=True),
    _text("content", comment="digest over the sorted content keys of the variants"),
    _time("created_at"),
    UniqueConstraint("image", "number"),
    UniqueConstraint("image", "content"),
    info=APPEND_ONLY,
)

variants = _table(
    "variants",
    _text("release", ForeignKey("releases.id"), primary_key=True),
    _integer("position", primary_key=True, autoincrement=False),
    _text("platform"),
    _text("content_key", index=True),
    Column("document", Text, nullable=False, comment="canonical JSON"),
    UniqueConstraint("release", "platform"),
    info={**APPEND_ONLY, "sealed_by": "release_states"},
)

release_states = _table(
    "release_states",
    _text("release", ForeignKey("releases.id"), primary_key=True),
    Column("state", Word(ReleaseState), nullable=False),
    _fault(),
    _text("promote", nullable=True),
    _integer("revision"),
    info=_keeps("release"),
)

channels = _table(
    "channels",
    _text("image", ForeignKey("images.id"), primary_key=True),
    _text("name", primary_key=True),
    _integer("number"),
    _integer("revision"),
    ForeignKeyConstraint(["image", "number"], ["releases.image", "releases.number"]),
    info=_keeps("image", "name"),
)

channel_history = _table(
    "channel_history",
    _text("image", primary_key=True),
    _text("channel", primary_key=True),
    _integer("revision", primary_key=True, autoincrement=False),
    Column("before", Integer),
    _integer("number"),
    _time("at"),
    _text("principal"),
    _text("why"),
    ForeignKeyConstraint(["image", "channel"], ["channels.image", "channels.name"]),
    ForeignKeyConstraint(["image", "number"], ["releases.image", "releases.number"]),
    info=APPEND_ONLY,
)

deployments = _table(
    "deployments",
    _integer("generation", primary_key=True, autoincrement=False),
    Column("default_platform", Plain(Platform), nullable=False),
    Column("pools", Plain(tuple[Pool, ...]), nullable=False),
    _text("default_image", ForeignKey("images.id"), nullable=True),
    info=APPEND_ONLY,
)

projects = _table(
    "projects",
    _text("id", primary_key=True),
    _text("name", unique=True),
    _time("created_at"),
    _text("runtime_image_id", nullable=True),
    _integer("revision"),
)

keys = _table(
    "keys",
    _text("id", primary_key=True),
    Column("kind", Word(KeyKind), nullable=False),
    _text("name"),
    _text("principal"),
    _text("hash", unique=True),
    _time("created_at"),
    _text("project", ForeignKey("projects.id"), nullable=True, index=True),
    _time("revoked_at", nullable=True),
    info=_keeps("id", "kind", "principal", "hash", "created_at", "project"),
)

frozen_releases = _table(
    "frozen_releases",
    _text("id", primary_key=True),
    _text("digest"),
    Column("document", Text, nullable=False, comment="canonical JSON, whose SHA-256 is `digest`"),
    _text("content_key", index=True),
    UniqueConstraint("id", "digest"),
    info=APPEND_ONLY,
)

templates = _table(
    "templates",
    *(_text("id", primary_key=True), _text("project", ForeignKey("projects.id"))),
    *(_text("name"), _time("created_at"), _time("updated_at")),
    Column("outline", Plain(Preparation), nullable=False, comment="the document without the bytes of files"),
    Column("document", Text, nullable=False, comment="canonical JSON"),
    _integer("revision"),
    UniqueConstraint("project", "name"),
)

frozen_templates = _table(
    "frozen_templates",
    _text("digest", primary_key=True, comment="SHA-256 of the document"),
    Column("document", Text, nullable=False, comment="canonical JSON"),
    info=APPEND_ONLY,
)

sessions = Table(
    "sessions",
    METADATA,
    _sequence(),
    _text("id", unique=True),
    _text("project", ForeignKey("projects.id")),
    _text("frozen"),
    _text("frozen_digest"),
    Column("state", Word(SessionState), nullable=False),
    _time("created_at"),
    _text("principal"),
    Column("network", Word(Network), nullable=False),
    Column("resources", Plain(SandboxSize), nullable=False),
    _json("env"),
    _json("metadata"),
    Column("waiting_for", Word(WaitingFor)),
    _time("wait_until", nullable=True),
    _fault(),
    _time("ended_at", nullable=True),
    _integer("revision"),
    Column("template", Plain(TemplateMark)),
    _text("template_digest", ForeignKey("frozen_templates.digest"), nullable=True),
    Column("setup_network", Word(Network)),
    UniqueConstraint("id", "frozen", "frozen_digest"),
    ForeignKeyConstraint(["frozen", "frozen_digest"], ["frozen_releases.id", "frozen_releases.digest"]),
    Index(None, "project", "seq"),
    Index(None, "state"),
    Index(None, "frozen"),
    info=_keeps(
        *("seq", "id", "project", "frozen", "frozen_digest", "created_at", "principal"),
        *("network", "resources", "env", "template", "template_digest", "setup_network"),
    ),
)

session_events = _table(
    "session_events",
    _text("session", ForeignKey("sessions.id"), primary_key=True),
    _integer("number", primary_key=True, comment="the Session's revision then"),
    _time("at"),
    Column("state", Word(SessionState), nullable=False),
    Column("waiting_for", Word(WaitingFor)),
    _fault(),
    info=APPEND_ONLY,
)

nodes = _table(
    "nodes",
    _text("id", primary_key=True),
    _text("name"),
    _text("provider"),
    _text("runtime"),
    Column("platform", Plain(Platform), nullable=False),
    _integer("slots"),
    _json("labels"),
    _integer("epoch"),
    _time("last_seen", nullable=True),
    Column("warm", Boolean, nullable=False),
    Column(
        "networks",
        Plain(frozenset[Network]),
        nullable=False,
        server_default='["disabled"]',
        comment="of a node that has not said hello since there is this column, what every node enforces",
    ),
)

allocations = _table(
    "allocations",
    _text("id", primary_key=True),
    _text("session"),
    _text("node", ForeignKey("nodes.id")),
    _text("pool"),
    Column("size", Plain(SandboxSize), nullable=False),
    _text("frozen"),
    _text("frozen_digest"),
    Column("state", Word(AllocationState), nullable=False),
    _fault(),
    _integer("ordinal", comment="1 for the first of its Session"),
    _time("opened_at"),
    _time("moved_at"),
    UniqueConstraint("session", "ordinal"),
    ForeignKeyConstraint(["frozen", "frozen_digest"], ["frozen_releases.id", "frozen_releases.digest"]),
    ForeignKeyConstraint(
        ["session", "frozen", "frozen_digest"], ["sessions.id", "sessions.frozen", "sessions.frozen_digest"]
    ),
    CheckConstraint(
        "state = 'closed' OR (coalesce(frozen, '') <> '' AND coalesce(frozen_digest, '') <> '')",
        name="open_is_frozen",
    ),
    info=_keeps("id", "session", "node", "pool", "size", "frozen", "frozen_digest", "ordinal", "opened_at"),
)

is_open = allocations.c.state != AllocationState.CLOSED
Index(
    "ix_allocations_open_of_session", allocations.c.session, unique=True, sqlite_where=is_open, postgresql_where=is_open
)
Index("ix_allocations_open_on_node", allocations.c.node, sqlite_where=is_open, postgresql_where=is_open)

idempotency_keys = _table(
    "idempotency_keys",
    _text("project", ForeignKey("projects.id"), primary_key=True),
    _text("key", primary_key=True),
    _text("body_hash"),
    _text("session", ForeignKey("sessions.id")),
    info=APPEND_ONLY,
)

readiness = _table(
    "readiness",
    _text("node", ForeignKey("nodes.id"), primary_key=True),
    _text("content_key", primary_key=True),
    Column("state", Word(ReadinessState), nullable=False),
    Column("wanted", Boolean, nullable=False),
    _integer("attempt"),
    _fault(),
    _time("retry_at", nullable=True),
    _bytes("bytes_done"),
    _bytes("bytes_total"),
    Index(None, "content_key"),
)

pins = _table(
    "pins",
    _text("node", ForeignKey("nodes.id"), primary_key=True),
    _text("content_key", primary_key=True),
)

wishes = _table(
    "wishes",
    _text("node", ForeignKey("nodes.id"), primary_key=True),
    _text("content_key", primary_key=True),
    _time("at"),
)

uploads = _table(
    "uploads",
    _text("id", primary_key=True),
    _text("digest"),
    _bytes("size"),
    _time("expires_at"),
)

publishes = Table(
    "publishes",
    METADATA,
    _sequence(),
    _text("id", unique=True),
    _text("image", comment="a name: the image is made when its first release is"),
    Column("order", Plain(PublishOrder), nullable=False),
    _text("principal"),
    _time("created_at"),
    Column("phase", Word(PublishPhase), nullable=False),
    _integer("attempt"),
    Column("inputs", Plain(Inputs)),
    _text("release", ForeignKey("releases.id"), nullable=True),
    Column("built", Boolean),
    _text("cancelled_by", nullable=True),
    _fault(),
    _time("moved_at", nullable=True),
    _time("ended_at", nullable=True),
    _integer("revision"),
    _text("idempotency_key", nullable=True, unique=True),
    _text("body_hash", nullable=True),
    Index(None, "image", "seq"),
    Index(None, "phase"),
    info=_keeps("seq", "id", "image", "order", "principal", "created_at", "idempotency_key", "body_hash"),
)

registry_secrets = _table(
    "registry_secrets",
    _text("registry", primary_key=True),
    _text("sealed", comment="opens with the installation's key, which is not in the database"),
    _time("updated_at"),
)

audit = Table(
    "audit",
    METADATA,
    _sequence(),
    _text("id", unique=True),
    _time("at"),
    _text("principal"),
    _text("action"),
    _text("subject", index=True),
    _text("outcome"),
    Column("details", JSON_VALUE),
    _text("request_id", nullable=True),
    info=APPEND_ONLY,
)
