"""The tables. `Table.info` says what of them the database itself refuses to change; `triggers` makes it so.

`frozen`: these columns (`"*"`: all) keep what was inserted, and a row is not inserted over. `kept`: rows are
never deleted. `sealed_by`: no row is added any more once that table has one of the same `release`.
Columns are named as the fields of the nouns that they hold.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
)

from sandbay.adapters.store import channel_tables, snapshot_tables, standing_tables
from sandbay.adapters.store.columns import JSON_VALUE, Plain, Word
from sandbay.adapters.store.making import (
    APPEND_ONLY,
    byte_count,
    fault,
    integer,
    json_value,
    keeps,
    sequence,
    table,
    text,
    time,
)
from sandbay.domain.allocation import AllocationState
from sandbay.domain.catalog import ImageState
from sandbay.domain.ceiling import Tier
from sandbay.domain.contract import ContractReport
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Pool, SandboxSize
from sandbay.domain.life import EndCause, Foretold, Life
from sandbay.domain.platform import Platform
from sandbay.domain.project import KeyKind
from sandbay.domain.publish import Inputs, PublishOrder, PublishPhase
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.release import ReleaseState
from sandbay.domain.scope import Confinement
from sandbay.domain.session import SessionState, WaitingFor
from sandbay.domain.template import Preparation, TemplateMark

METADATA = standing_tables.METADATA

channels = channel_tables.channels
channel_history = channel_tables.channel_history
promotions = channel_tables.promotions
snapshots = snapshot_tables.snapshots

images = table(
    "images",
    text("id", primary_key=True),
    text("name", unique=True),
    time("created_at"),
    text("description"),
    json_value("labels"),
    Column("state", Word(ImageState), nullable=False),
    integer("revision"),
    Column("tier", Word(Tier), nullable=False, server_default=Tier.STANDARD),
    info=keeps("id", "name", "created_at"),
)

releases = table(
    "releases",
    text("id", primary_key=True),
    text("image", ForeignKey("images.id")),
    integer("number"),
    text("source_commit", nullable=True),
    text("content", comment="digest over the sorted content keys of the variants"),
    time("created_at"),
    UniqueConstraint("image", "number"),
    UniqueConstraint("image", "content"),
    info=APPEND_ONLY,
)

variants = table(
    "variants",
    text("release", ForeignKey("releases.id"), primary_key=True),
    integer("position", primary_key=True, autoincrement=False),
    text("platform"),
    text("content_key", index=True),
    Column("document", Text, nullable=False, comment="canonical JSON"),
    UniqueConstraint("release", "platform"),
    info={**APPEND_ONLY, "sealed_by": "release_states"},
)

release_states = table(
    "release_states",
    text("release", ForeignKey("releases.id"), primary_key=True),
    Column("state", Word(ReleaseState), nullable=False),
    fault(),
    text("promote", nullable=True),
    integer("revision"),
    info=keeps("release"),
)

contracts = table(
    "contracts",
    text("release", ForeignKey("releases.id"), primary_key=True),
    json_value("tools"),
    integer("checks"),
    info=keeps("release"),
)

contract_reports = table(
    "contract_reports",
    text("release", ForeignKey("contracts.release"), primary_key=True),
    text("content_key", primary_key=True),
    integer("number", primary_key=True, autoincrement=False, comment="which check of the release it answers"),
    time("at"),
    text("node"),
    Column("report", Plain(ContractReport), nullable=False),
    info=APPEND_ONLY,
)

deployments = table(
    "deployments",
    integer("generation", primary_key=True, autoincrement=False),
    Column("default_platform", Plain(Platform), nullable=False),
    Column("pools", Plain(tuple[Pool, ...]), nullable=False),
    text("default_image", ForeignKey("images.id"), nullable=True),
    info=APPEND_ONLY,
)

projects = table(
    "projects",
    text("id", primary_key=True),
    text("name", unique=True),
    time("created_at"),
    integer("revision"),
    Column("scope_required", Boolean, nullable=False, server_default=false()),
)

keys = table(
    "keys",
    text("id", primary_key=True),
    Column("kind", Word(KeyKind), nullable=False),
    text("name"),
    text("principal"),
    text("hash", unique=True),
    time("created_at"),
    text("project", ForeignKey("projects.id"), nullable=True, index=True),
    time("revoked_at", nullable=True),
    Column("confinement", Plain(Confinement), nullable=False, server_default='{"agents":null,"scope":null}'),
    info=keeps("id", "kind", "principal", "hash", "created_at", "project", "confinement"),
)

frozen_releases = table(
    "frozen_releases",
    text("id", primary_key=True),
    text("digest"),
    Column("document", Text, nullable=False, comment="canonical JSON, whose SHA-256 is `digest`"),
    text("content_key", index=True),
    UniqueConstraint("id", "digest"),
    info=APPEND_ONLY,
)

templates = table(
    "templates",
    *(text("id", primary_key=True), text("project", ForeignKey("projects.id"))),
    *(text("name"), time("created_at"), time("updated_at")),
    Column("outline", Plain(Preparation), nullable=False, comment="the document without the bytes of files"),
    Column("document", Text, nullable=False, comment="canonical JSON"),
    integer("revision"),
    UniqueConstraint("project", "name"),
)

frozen_templates = table(
    "frozen_templates",
    text("digest", primary_key=True, comment="SHA-256 of the document"),
    Column("document", Text, nullable=False, comment="canonical JSON"),
    info=APPEND_ONLY,
)

sessions = Table(
    "sessions",
    METADATA,
    sequence(),
    text("id", unique=True),
    text("project", ForeignKey("projects.id")),
    text("frozen"),
    text("frozen_digest"),
    Column("state", Word(SessionState), nullable=False),
    time("created_at"),
    text("principal"),
    Column("network", Word(Network), nullable=False),
    Column("resources", Plain(SandboxSize), nullable=False),
    json_value("env"),
    json_value("metadata"),
    Column("waiting_for", Word(WaitingFor)),
    time("wait_until", nullable=True),
    fault(),
    time("ended_at", nullable=True),
    integer("revision"),
    Column("template", Plain(TemplateMark)),
    text("template_digest", ForeignKey("frozen_templates.digest"), nullable=True),
    Column("setup_network", Word(Network)),
    *(text("scope", nullable=True), text("agent", nullable=True)),
    Column("life", Plain(Life), nullable=False, server_default="{}"),
    *(time("moved_at", nullable=True), time("used_at", nullable=True)),
    *(Column("foretold", Plain(Foretold)), Column("ended_because", Word(EndCause))),
    Column("secret_env", JSON_VALUE, nullable=False, server_default="{}", comment="variable → a secret's name"),
    UniqueConstraint("id", "frozen", "frozen_digest"),
    ForeignKeyConstraint(["frozen", "frozen_digest"], ["frozen_releases.id", "frozen_releases.digest"]),
    Index(None, "project", "seq"),
    Index(None, "state"),
    Index(None, "frozen"),
    info=keeps(
        *("seq", "id", "project", "frozen", "frozen_digest", "created_at", "principal"),
        *("network", "resources", "env", "secret_env", "template", "template_digest"),
        *("setup_network", "scope", "agent", "life"),
    ),
)

session_events = table(
    "session_events",
    text("session", ForeignKey("sessions.id"), primary_key=True),
    integer("number", primary_key=True, comment="the Session's revision then"),
    time("at"),
    Column("state", Word(SessionState), nullable=False),
    Column("waiting_for", Word(WaitingFor)),
    fault(),
    *(Column("foretold", Plain(Foretold)), Column("ended_because", Word(EndCause))),
    info=APPEND_ONLY,
)

nodes = table(
    "nodes",
    text("id", primary_key=True),
    text("name"),
    text("provider"),
    text("runtime"),
    Column("platform", Plain(Platform), nullable=False),
    integer("slots"),
    json_value("labels"),
    integer("epoch"),
    time("last_seen", nullable=True),
    Column("warm", Boolean, nullable=False),
    Column(
        "networks",
        Plain(frozenset[Network]),
        nullable=False,
        server_default='["disabled"]',
        comment="of a node that has not said hello since there is this column, what every node enforces",
    ),
)

allocations = table(
    "allocations",
    text("id", primary_key=True),
    text("session"),
    text("node", ForeignKey("nodes.id")),
    text("pool"),
    Column("size", Plain(SandboxSize), nullable=False),
    text("frozen"),
    text("frozen_digest"),
    Column("state", Word(AllocationState), nullable=False),
    fault(),
    integer("ordinal", comment="1 for the first of its Session"),
    time("opened_at"),
    time("moved_at"),
    UniqueConstraint("session", "ordinal"),
    ForeignKeyConstraint(["frozen", "frozen_digest"], ["frozen_releases.id", "frozen_releases.digest"]),
    ForeignKeyConstraint(
        ["session", "frozen", "frozen_digest"], ["sessions.id", "sessions.frozen", "sessions.frozen_digest"]
    ),
    CheckConstraint(
        "state = 'closed' OR (coalesce(frozen, '') <> '' AND coalesce(frozen_digest, '') <> '')",
        name="open_is_frozen",
    ),
    info=keeps("id", "session", "node", "pool", "size", "frozen", "frozen_digest", "ordinal", "opened_at"),
)

# Said in the statement itself: with a parameter there neither database knows that the partial indexes hold the answer
# before it sees the value, and SQLite plans the statement anew at each execution.
is_open = allocations.c.state != literal_column(f"'{AllocationState.CLOSED}'")
Index(
    "ix_allocations_open_of_session", allocations.c.session, unique=True, sqlite_where=is_open, postgresql_where=is_open
)
Index("ix_allocations_open_on_node", allocations.c.node, sqlite_where=is_open, postgresql_where=is_open)

idempotency_keys = table(
    "idempotency_keys",
    text("project", ForeignKey("projects.id"), primary_key=True),
    text("key", primary_key=True),
    text("body_hash"),
    text("session", ForeignKey("sessions.id")),
    info=APPEND_ONLY,
)

readiness = table(
    "readiness",
    text("node", ForeignKey("nodes.id"), primary_key=True),
    text("content_key", primary_key=True),
    Column("state", Word(ReadinessState), nullable=False),
    Column("wanted", Boolean, nullable=False),
    integer("attempt"),
    fault(),
    time("retry_at", nullable=True),
    byte_count("bytes_done"),
    byte_count("bytes_total"),
    Index(None, "content_key"),
)

pins = table(
    "pins",
    text("node", ForeignKey("nodes.id"), primary_key=True),
    text("content_key", primary_key=True),
)

wishes = table(
    "wishes",
    text("node", ForeignKey("nodes.id"), primary_key=True),
    text("content_key", primary_key=True),
    time("at"),
    integer("why", server_default="2", comment="a member of Why: what there was before this column came of demand"),
)

uploads = table(
    "uploads",
    text("id", primary_key=True),
    text("digest"),
    byte_count("size"),
    time("expires_at"),
)

publishes = Table(
    "publishes",
    METADATA,
    sequence(),
    text("id", unique=True),
    text("image", comment="a name: the image is made when its first release is"),
    Column("order", Plain(PublishOrder), nullable=False),
    text("principal"),
    time("created_at"),
    Column("phase", Word(PublishPhase), nullable=False),
    integer("attempt"),
    Column("inputs", Plain(Inputs)),
    text("release", ForeignKey("releases.id"), nullable=True),
    Column("built", Boolean),
    text("cancelled_by", nullable=True),
    fault(),
    time("moved_at", nullable=True),
    time("ended_at", nullable=True),
    integer("revision"),
    text("idempotency_key", nullable=True, unique=True),
    text("body_hash", nullable=True),
    Index(None, "image", "seq"),
    Index(None, "phase"),
    info=keeps("seq", "id", "image", "order", "principal", "created_at", "idempotency_key", "body_hash"),
)

registry_secrets = table(
    "registry_secrets",
    text("registry", primary_key=True),
    text("sealed", comment="opens with the installation's key, which is not in the database"),
    time("updated_at"),
)

secrets = table(
    "secrets",
    text("project", ForeignKey("projects.id"), primary_key=True),
    text("name", primary_key=True),
    text("sealed", comment="opens with the installation's key, which is not in the database"),
    time("updated_at"),
)

audit = Table(
    "audit",
    METADATA,
    sequence(),
    text("id", unique=True),
    time("at"),
    text("principal"),
    text("action"),
    text("subject", index=True),
    text("outcome"),
    Column("details", JSON_VALUE),
    text("request_id", nullable=True),
    info=APPEND_ONLY,
)
