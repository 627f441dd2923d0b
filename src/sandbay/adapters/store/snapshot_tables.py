"""The table of suspended state. `tables` has all of them; what `info` means is told there.

What it is a state of never changes.
"""

from sqlalchemy import BigInteger, Column, ForeignKey, ForeignKeyConstraint, Index, literal_column

from sandbay.adapters.store.columns import Word
from sandbay.adapters.store.making import keeps, table, text, time
from sandbay.domain.suspension import SuspensionState

snapshots = table(
    "snapshots",
    text("id", primary_key=True),
    text("session"),
    text("node", ForeignKey("nodes.id")),
    text("frozen"),
    text("frozen_digest"),
    time("at"),
    Column("state", Word(SuspensionState), nullable=False),
    Column("bytes", BigInteger, comment="null until it is held"),
    ForeignKeyConstraint(
        ["session", "frozen", "frozen_digest"], ["sessions.id", "sessions.frozen", "sessions.frozen_digest"]
    ),
    info=keeps("id", "session", "node", "frozen", "frozen_digest", "at"),
)
_OVER = (SuspensionState.DROPPING, SuspensionState.DROPPED)
is_kept = snapshots.c.state.not_in([literal_column(f"'{it}'") for it in _OVER])
Index(
    "ix_snapshots_kept_of_session",
    snapshots.c.session,
    unique=True,
    sqlite_where=is_kept,
    postgresql_where=is_kept,
)
Index(None, snapshots.c.node)
