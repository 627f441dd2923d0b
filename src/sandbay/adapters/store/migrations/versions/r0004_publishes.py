"""Publishes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)
SEQUENCE = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "publishes",
        sa.Column("seq", SEQUENCE, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False, comment="a name: the image is made when its first release is"),
        sa.Column("order", JSON, nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("inputs", JSON, nullable=True),
        sa.Column("release", sa.String(), nullable=True),
        sa.Column("built", sa.Boolean(), nullable=True),
        sa.Column("cancelled_by", sa.String(), nullable=True),
        sa.Column("fault", JSON, nullable=True),
        sa.Column("moved_at", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("body_hash", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name=op.f("fk_publishes_release")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_publishes")),
        sa.UniqueConstraint("id", name=op.f("uq_publishes_id")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_publishes_idempotency_key")),
    )
    op.create_index(op.f("ix_publishes_image_seq"), "publishes", ["image", "seq"], unique=False)
    op.create_index(op.f("ix_publishes_phase"), "publishes", ["phase"], unique=False)
