"""Column types: our values on one side, what both databases hold on the other."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, DateTime, String, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from sandbay.domain.canonical import plain, rebuild

JSON_VALUE = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""PostgreSQL's `json` has no equality, which the guards need; `jsonb` has."""


class UtcTime(TypeDecorator[datetime]):
    """A moment. SQLite keeps no zone, so it is UTC on the way in and on the way out."""

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = DateTime(timezone=True)
    cache_ok: bool | None = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Raise ValueError on a time without a zone: nobody could say when that was."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone: {value}")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """A moment in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Word(TypeDecorator[StrEnum]):
    """A member of an enum, as its word."""

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = String
    cache_ok: bool | None = True

    def __init__(self, kind: Callable[[str], StrEnum]) -> None:
        """`kind` is the enum."""
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        """The bare word; a word that is no member raises ValueError."""
        return None if value is None else self.kind(value).value

    def process_result_value(self, value: str | None, _dialect: Dialect) -> StrEnum | None:
        """The member."""
        return None if value is None else self.kind(value)


class Plain(TypeDecorator[Any]):
    """A frozen dataclass, or a tuple of them, as JSON."""

    impl: TypeEngine[Any] | type[TypeEngine[Any]] = JSON_VALUE
    cache_ok: bool | None = True

    def __init__(self, kind: Any) -> None:
        """`kind` is what `rebuild` makes of the JSON."""
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: Any, _dialect: Dialect) -> Any:
        """Plain data."""
        return plain(value)

    def process_result_value(self, value: Any, _dialect: Dialect) -> Any:
        """The noun again; raises on what `plain` would not have written."""
        return None if value is None else rebuild(self.kind, value)
