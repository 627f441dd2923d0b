"""Tables of what stands along a path: scopes, bindings, ceilings. Part of `tables`."""

from typing import Any

from sqlalchemy import Column, ForeignKey, String, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from sandbay.adapters.store.columns import Plain, Word
from sandbay.adapters.store.making import METADATA, integer, table, text, time
from sandbay.domain.binding import Mode
from sandbay.domain.ceiling import AllowList, Override
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import Subject
from sandbay.domain.trail import Level
from sandbay.ports.standing import subject_text

__all__ = ["METADATA", "allow_lists", "bindings", "grants", "overrides", "scopes"]


class SubjectText(TypeDecorator[Subject]):
    """Whose row it is, as one word: what a path can name is found by key."""

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = String
    cache_ok: bool | None = True

    def process_bind_param(self, value: Subject | None, _dialect: Dialect) -> str | None:
        """The word."""
        return None if value is None else subject_text(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Subject | None:
        """The noun."""
        if value is None:
            return None
        word, _, name = value.partition(":")
        owner, _, agent = name.partition(":")
        level = Level(word)
        return Subject(level, agent, ProjectId(owner)) if level is Level.AGENT else Subject(level, name or None)


def _under(name: str, *content: Column[Any]) -> Any:
    """A table of rows that stand under subjects: what is said, then who wrote it, when and why."""
    return table(
        name,
        Column("subject", SubjectText, primary_key=True),
        *content,
        text("author"),
        time("at"),
        text("reason", nullable=True),
        integer("revision"),
    )


scopes = table(
    "scopes",
    text("name", primary_key=True),
    time("created_at"),
    text("parent", ForeignKey("scopes.name"), nullable=True, index=True),
    text("project", ForeignKey("projects.id"), nullable=True, index=True),
    integer("revision"),
)

bindings = _under("bindings", Column("mode", Word(Mode), nullable=False), text("reference"))
allow_lists = _under("allow_lists", Column("allowed", Plain(AllowList), nullable=False))
overrides = _under("overrides", Column("override", Word(Override), nullable=False))
grants = _under("grants", text("image", ForeignKey("images.id"), primary_key=True))
