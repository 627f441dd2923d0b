"""The tables of channels. `tables` has all of them; what `info` means is told there."""

from sqlalchemy import Boolean, Column, ForeignKey, ForeignKeyConstraint, Index, Integer, Table

from sandbay.adapters.store.columns import Word
from sandbay.adapters.store.making import (
    APPEND_ONLY,
    METADATA,
    fault,
    integer,
    keeps,
    sequence,
    table,
    text,
    time,
)
from sandbay.domain.promotion import PromotionOutcome

channels = table(
    "channels",
    text("image", ForeignKey("images.id"), primary_key=True),
    text("name", primary_key=True),
    integer("number"),
    integer("revision"),
    ForeignKeyConstraint(["image", "number"], ["releases.image", "releases.number"]),
    info=keeps("image", "name"),
)

channel_history = table(
    "channel_history",
    text("image", primary_key=True),
    text("channel", primary_key=True),
    integer("revision", primary_key=True, autoincrement=False),
    Column("before", Integer),
    integer("number"),
    time("at"),
    text("principal"),
    text("why"),
    ForeignKeyConstraint(["image", "channel"], ["channels.image", "channels.name"]),
    ForeignKeyConstraint(["image", "number"], ["releases.image", "releases.number"]),
    info=APPEND_ONLY,
)

promotions = Table(
    "promotions",
    METADATA,
    sequence(),
    text("id", unique=True),
    text("image", ForeignKey("images.id")),
    text("channel"),
    integer("number"),
    Column("before", Integer),
    integer("expected"),
    Column("nodes", Integer, comment="how many have to be ready; null: all that can run it"),
    time("deadline"),
    time("created_at"),
    text("principal"),
    text("why"),
    Column("force", Boolean, nullable=False),
    Column("outcome", Word(PromotionOutcome)),
    fault(),
    time("ended_at", nullable=True),
    text("ended_by", nullable=True),
    ForeignKeyConstraint(["image", "number"], ["releases.image", "releases.number"]),
    info=keeps(
        *("seq", "id", "image", "channel", "number", "before", "expected"),
        *("nodes", "deadline", "created_at", "principal", "why", "force"),
    ),
)
is_waiting = promotions.c.outcome.is_(None)
Index(
    "ix_promotions_waiting",
    promotions.c.image,
    promotions.c.channel,
    unique=True,
    sqlite_where=is_waiting,
    postgresql_where=is_waiting,
)
