"""How long Sessions live, and why they ended."""

from contextlib import AbstractContextManager
from typing import Literal

import sqlalchemy as sa
from alembic import op
from alembic.operations import BatchOperations
from sqlalchemy.dialects.postgresql import JSONB

revision = "0011"
down_revision = "0010"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the columns. Sessions of before have no limit; those that have ended had been asked to."""
    # A default with `:null` in it would not survive the next time that the table is made anew.
    with _altered("sessions", rowid=True) as sessions:
        sessions.add_column(sa.Column("life", JSON, nullable=False, server_default="{}"))
        sessions.add_column(sa.Column("moved_at", TIME, nullable=True))
        sessions.add_column(sa.Column("used_at", TIME, nullable=True))
        sessions.add_column(sa.Column("foretold", JSON, nullable=True))
        sessions.add_column(sa.Column("ended_because", sa.String(), nullable=True))
    with _altered("session_events", rowid=False) as events:
        events.add_column(sa.Column("foretold", JSON, nullable=True))
        events.add_column(sa.Column("ended_because", sa.String(), nullable=True))
    op.execute("UPDATE sessions SET ended_because = 'asked' WHERE state IN ('ending', 'ended')")


def _altered(name: str, *, rowid: bool) -> AbstractContextManager[BatchOperations]:
    """As in 0005: made anew, the table reads as every other."""
    recreate: Literal["always", "never"] = "always" if op.get_bind().dialect.name == "sqlite" else "never"
    options = {} if rowid else {"sqlite_with_rowid": False}
    return op.batch_alter_table(name, recreate=recreate, table_kwargs=options)
