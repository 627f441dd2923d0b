"""What releases promise, and what checks of it saw."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "contracts",
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("tools", JSON, nullable=False),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name=op.f("fk_contracts_release")),
        sa.PrimaryKeyConstraint("release", name=op.f("pk_contracts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "contract_reports",
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("content_key", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, comment="which check of the release it answers"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.ForeignKeyConstraint(["release"], ["contracts.release"], name=op.f("fk_contract_reports_release")),
        sa.PrimaryKeyConstraint("release", "content_key", "number", name=op.f("pk_contract_reports")),
        sqlite_with_rowid=False,
    )
