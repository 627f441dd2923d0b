"""Where the state of suspended Sessions is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "snapshots",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=False),
        sa.Column("frozen", sa.String(), nullable=False),
        sa.Column("frozen_digest", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True, comment="null until it is held"),
        sa.ForeignKeyConstraint(["node"], ["nodes.id"], name=op.f("fk_snapshots_node")),
        sa.ForeignKeyConstraint(
            ["session", "frozen", "frozen_digest"],
            ["sessions.id", "sessions.frozen", "sessions.frozen_digest"],
            name=op.f("fk_snapshots_session_frozen_frozen_digest"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
        sqlite_with_rowid=False,
    )
    kept = sa.text("(state NOT IN ('dropping', 'dropped'))")
    op.create_index(
        "ix_snapshots_kept_of_session",
        "snapshots",
        ["session"],
        unique=True,
        sqlite_where=kept,
        postgresql_where=kept,
    )
    op.create_index(op.f("ix_snapshots_node"), "snapshots", ["node"])
