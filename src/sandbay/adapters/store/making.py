"""What tables are made of: the metadata, and columns by what they hold."""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table

from sandbay.adapters.store.columns import JSON_VALUE, Plain, UtcTime
from sandbay.domain.release import Fault

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

APPEND_ONLY: dict[str, Any] = {"frozen": "*", "kept": True}


def keeps(*frozen: str) -> dict[str, Any]:
    """These columns keep what was inserted, and rows are never deleted."""
    return {"frozen": frozen, "kept": True}


def table(name: str, *items: Any, info: dict[str, Any] | None = None) -> Table:
    """Without a hidden rowid, over which SQLite could replace a row whatever its key."""
    return Table(name, METADATA, *items, info=info or {}, sqlite_with_rowid=False)


def sequence() -> Column[int]:
    """The order of insertion, for what is listed newest first. In SQLite it is the rowid."""
    return Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def text(name: str, *more: Any, **options: Any) -> Column[str]:
    """A text, required unless `nullable`."""
    return Column(name, String, *more, nullable=options.pop("nullable", False), **options)


def fault() -> Column[Any]:
    """Why it failed, if it did."""
    return Column("fault", Plain(Fault))


def time(name: str, *, nullable: bool = False) -> Column[Any]:
    """A moment."""
    return Column(name, UtcTime, nullable=nullable)


def integer(name: str, **options: Any) -> Column[int]:
    """A number."""
    return Column(name, Integer, nullable=False, **options)


def byte_count(name: str) -> Column[int]:
    """A number of bytes."""
    return Column(name, BigInteger, nullable=False)


def json_value(name: str) -> Column[Any]:
    """JSON as it is."""
    return Column(name, JSON_VALUE, nullable=False)
