"""Promotions that wait for nodes."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)
SEQUENCE = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "promotions",
        sa.Column("seq", SEQUENCE, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("image", sa.String(), nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("before", sa.Integer(), nullable=True),
        sa.Column("expected", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=True, comment="how many have to be ready; null: all that can run it"),
        sa.Column("deadline", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("principal", sa.String(), nullable=False),
        sa.Column("why", sa.String(), nullable=False),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("fault", JSON, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("ended_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["image"], ["images.id"], name=op.f("fk_promotions_image")),
        sa.ForeignKeyConstraint(
            ["image", "number"], ["releases.image", "releases.number"], name=op.f("fk_promotions_image_number")
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_promotions")),
        sa.UniqueConstraint("id", name=op.f("uq_promotions_id")),
    )
    op.create_index(
        "ix_promotions_waiting",
        "promotions",
        ["image", "channel"],
        unique=True,
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )
