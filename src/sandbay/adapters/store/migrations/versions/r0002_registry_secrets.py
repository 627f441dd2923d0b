"""Credentials for registries, sealed."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "registry_secrets",
        sa.Column("registry", sa.String(), nullable=False),
        sa.Column(
            "sealed",
            sa.String(),
            nullable=False,
            comment="opens with the installation's key, which is not in the database",
        ),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("registry", name=op.f("pk_registry_secrets")),
        sqlite_with_rowid=False,
    )
