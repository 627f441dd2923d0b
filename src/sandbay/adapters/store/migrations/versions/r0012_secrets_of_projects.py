"""Secrets of projects, sealed, and which variables of Sessions hold them."""

from typing import Literal

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Make the table. Sessions of before have none."""
    op.create_table(
        "secrets",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column(
            "sealed",
            sa.String(),
            nullable=False,
            comment="opens with the installation's key, which is not in the database",
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project"], ["projects.id"], name=op.f("fk_secrets_project")),
        sa.PrimaryKeyConstraint("project", "name", name=op.f("pk_secrets")),
        sqlite_with_rowid=False,
    )
    # As in 0005: made anew, the table reads as every other.
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    with op.batch_alter_table("sessions", recreate=recreate) as sessions:
        sessions.add_column(
            sa.Column("secret_env", JSON, nullable=False, server_default="{}", comment="variable → a secret's name")
        )
