"""Which states a Session came to, and why."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

_AS_THEY_ARE = """
INSERT INTO session_events (session, number, at, state, waiting_for, fault)
SELECT id, revision, coalesce(ended_at, created_at), state, waiting_for, fault FROM sessions
"""


def upgrade() -> None:
    """Make the table. Of Sessions that are there already, only what they are now is known."""
    op.create_table(
        "session_events",
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, comment="the Session's revision then"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("waiting_for", sa.String(), nullable=True),
        sa.Column("fault", JSON, nullable=True),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name=op.f("fk_session_events_session")),
        sa.PrimaryKeyConstraint("session", "number", name=op.f("pk_session_events")),
        sqlite_with_rowid=False,
    )
    op.execute(_AS_THEY_ARE)
