"""The first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)
SEQUENCE = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make every table; what a table refers to comes first."""
    _audit()
    _frozen_releases()
    _images()
    _nodes()
    _projects()
    _uploads()
    _deployments()
    _keys()
    _pins()
    _readiness()
    _releases()
    _sessions()
    _wishes()
    _allocations()
    _open_allocations()
    _channels()
    _idempotency_keys()
    _release_states()
    _variants()
    _channel_history()


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", SEQUENCE, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("details", JSON, nullable=True),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit")),
        sa.UniqueConstraint("id", name=op.f("uq_audit_id")),
    )
    op.create_index(op.f("ix_audit_subject"), "audit", ["subject"], unique=False)


def _frozen_releases() -> None:
    op.create_table(
        "frozen_releases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False, comment="canonical JSON, whose SHA-256 is `digest`"),
        sa.Column("content_key", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_frozen_releases")),
        sa.UniqueConstraint("id", "digest", name=op.f("uq_frozen_releases_id_digest")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_frozen_releases_content_key"), "frozen_releases", ["content_key"], unique=False)


def _images() -> None:
    op.create_table(
        "images",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_images")),
        sa.UniqueConstraint("name", name=op.f("uq_images_name")),
        sqlite_with_rowid=False,
    )


def _nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("runtime", sa.String(), nullable=False),
        sa.Column("platform", JSON, nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("last_seen", TIME, nullable=True),
        sa.Column("warm", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
        sqlite_with_rowid=False,
    )


def _projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("runtime_image_id", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
        sqlite_with_rowid=False,
    )


def _uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_uploads")),
        sqlite_with_rowid=False,
    )


def _deployments() -> None:
    op.create_table(
        "deployments",
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("default_platform", JSON, nullable=False),
        sa.Column("pools", JSON, nullable=False),
        sa.Column("default_image", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["default_image"], ["images.id"], name=op.f("fk_deployments_default_image")),
        sa.PrimaryKeyConstraint("generation", name=op.f("pk_deployments")),
        sqlite_with_rowid=False,
    )


def _keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_keys_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
        sa.UniqueConstraint("hash", name=op.f("uq_keys_hash")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_keys_project"), "keys", ["project"], unique=False)


def _pins() -> None:
    op.create_table(
        "pins",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("content_key", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.id"], name=op.f("fk_pins_node")),
        sa.PrimaryKeyConstraint("node", "content_key", name=op.f("pk_pins")),
        sqlite_with_rowid=False,
    )


def _readiness() -> None:
    op.create_table(
        "readiness",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("content_key", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("wanted", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("fault", JSON, nullable=True),
        sa.Column("retry_at", TIME, nullable=True),
        sa.Column("bytes_done", sa.BigInteger(), nullable=False),
        sa.Column("bytes_total", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.id"], name=op.f("fk_readiness_node")),
        sa.PrimaryKeyConstraint("node", "content_key", name=op.f("pk_readiness")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_readiness_content_key"), "readiness", ["content_key"], unique=False)


def _releases() -> None:
    op.create_table(
        "releases",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("source_commit", sa.String(), nullable=True),
        sa.Column(
            "content", sa.String(), nullable=False, comment="digest over the sorted content keys of the variants"
        ),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["image"], ["images.id"], name=op.f("fk_releases_image")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        sa.UniqueConstraint("image", "content", name=op.f("uq_releases_image_content")),
        sa.UniqueConstraint("image", "number", name=op.f("uq_releases_image_number")),
        sqlite_with_rowid=False,
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("seq", SEQUENCE, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("frozen", sa.String(), nullable=False),
        sa.Column("frozen_digest", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("resources", JSON, nullable=False),
        sa.Column("env", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("waiting_for", sa.String(), nullable=True),
        sa.Column("wait_until", TIME, nullable=True),
        sa.Column("fault", JSON, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["frozen", "frozen_digest"],
            ["frozen_releases.id", "frozen_releases.digest"],
            name=op.f("fk_sessions_frozen_frozen_digest"),
        ),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_sessions_project")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_sessions")),
        sa.UniqueConstraint("id", "frozen", "frozen_digest", name=op.f("uq_sessions_id_frozen_frozen_digest")),
        sa.UniqueConstraint("id", name=op.f("uq_sessions_id")),
    )
    op.create_index(op.f("ix_sessions_frozen"), "sessions", ["frozen"], unique=False)
    op.create_index(op.f("ix_sessions_project_seq"), "sessions", ["project", "seq"], unique=False)
    op.create_index(op.f("ix_sessions_state"), "sessions", ["state"], unique=False)


def _wishes() -> None:
    op.create_table(
        "wishes",
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("content_key", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["node"], ["nodes.id"], name=op.f("fk_wishes_node")),
        sa.PrimaryKeyConstraint("node", "content_key", name=op.f("pk_wishes")),
        sqlite_with_rowid=False,
    )


def _allocations() -> None:
    op.create_table(
        "allocations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("size", JSON, nullable=False),
        sa.Column("frozen", sa.String(), nullable=False),
        sa.Column("frozen_digest", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("fault", JSON, nullable=True),
        sa.Column("ordinal", sa.Integer(), nullable=False, comment="1 for the first of its Session"),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("moved_at", TIME, nullable=False),
        sa.CheckConstraint(
            "state = 'closed' OR (coalesce(frozen, '') <> '' AND coalesce(frozen_digest, '') <> '')",
            name=op.f("ck_allocations_open_is_frozen"),
        ),
        sa.ForeignKeyConstraint(
            ["frozen", "frozen_digest"],
            ["frozen_releases.id", "frozen_releases.digest"],
            name=op.f("fk_allocations_frozen_frozen_digest"),
        ),
        sa.ForeignKeyConstraint(["node"], ["nodes.id"], name=op.f("fk_allocations_node")),
        sa.ForeignKeyConstraint(
            ["session", "frozen", "frozen_digest"],
            ["sessions.id", "sessions.frozen", "sessions.frozen_digest"],
            name=op.f("fk_allocations_session_frozen_frozen_digest"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
        sa.UniqueConstraint("session", "ordinal", name=op.f("uq_allocations_session_ordinal")),
        sqlite_with_rowid=False,
    )


def _open_allocations() -> None:
    op.create_index(
        "ix_allocations_open_of_session",
        "allocations",
        ["session"],
        unique=True,
        sqlite_where=sa.text("state != 'closed'"),
        postgresql_where=sa.text("state != 'closed'"),
    )
    op.create_index(
        "ix_allocations_open_on_node",
        "allocations",
        ["node"],
        unique=False,
        sqlite_where=sa.text("state != 'closed'"),
        postgresql_where=sa.text("state != 'closed'"),
    )


def _channels() -> None:
    op.create_table(
        "channels",
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["image", "number"], ["releases.image", "releases.number"], name=op.f("fk_channels_image_number")
        ),
        sa.ForeignKeyConstraint(["image"], ["images.id"], name=op.f("fk_channels_image")),
        sa.PrimaryKeyConstraint("image", "name", name=op.f("pk_channels")),
        sqlite_with_rowid=False,
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_hash", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_idempotency_keys_project")),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name=op.f("fk_idempotency_keys_session")),
        sa.PrimaryKeyConstraint("project", "key", name=op.f("pk_idempotency_keys")),
        sqlite_with_rowid=False,
    )


def _release_states() -> None:
    op.create_table(
        "release_states",
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("fault", JSON, nullable=True),
        sa.Column("promote", sa.String(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name=op.f("fk_release_states_release")),
        sa.PrimaryKeyConstraint("release", name=op.f("pk_release_states")),
        sqlite_with_rowid=False,
    )


def _variants() -> None:
    op.create_table(
        "variants",
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("content_key", sa.String(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False, comment="canonical JSON"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name=op.f("fk_variants_release")),
        sa.PrimaryKeyConstraint("release", "position", name=op.f("pk_variants")),
        sa.UniqueConstraint("release", "platform", name=op.f("uq_variants_release_platform")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_variants_content_key"), "variants", ["content_key"], unique=False)


def _channel_history() -> None:
    op.create_table(
        "channel_history",
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("before", sa.Integer(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["image", "channel"], ["channels.image", "channels.name"], name=op.f("fk_channel_history_image_channel")
        ),
        sa.ForeignKeyConstraint(
            ["image", "number"], ["releases.image", "releases.number"], name=op.f("fk_channel_history_image_number")
        ),
        sa.PrimaryKeyConstraint("image", "channel", "revision", name=op.f("pk_channel_history")),
        sqlite_with_rowid=False,
    )
