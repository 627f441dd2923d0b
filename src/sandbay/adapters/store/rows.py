"""From rows to nouns. Columns are named as fields, so a noun is a slice of its row and back.

Documents are written once and never change, so what was read and checked once is kept.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Column, Table, func, select
from sqlalchemy.sql import Select

from sandbay.adapters.store.snapshot_tables import is_kept
from sandbay.adapters.store.tables import allocations, frozen_releases, sessions, snapshots
from sandbay.domain.allocation import Allocation
from sandbay.domain.canonical import rebuild, sha256
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.release import Variant
from sandbay.domain.session import Session
from sandbay.domain.template import FrozenTemplate, Preparation
from sandbay.ports.records import SessionRecord

T = TypeVar("T")


class AlteredError(Exception):
    """A document in the database is not the one that was written: its digest differs."""


def names_of(cls: type) -> tuple[str, ...]:
    """The names of a noun's fields, in order."""
    return tuple(cls.__dataclass_fields__)  # type: ignore[attr-defined] # `fields()` is slow, and this is every row


def columns_of(cls: type, table: Table) -> tuple[Column[Any], ...]:
    """The columns that hold a noun, in the order of its fields."""
    return tuple(table.c[name] for name in names_of(cls))


def values_of(noun: Any) -> dict[str, Any]:
    """What to insert for a noun."""
    return {name: getattr(noun, name) for name in names_of(type(noun))}


def noun(cls: type[T], row: Sequence[Any], start: int = 0) -> T:
    """The noun whose fields stand in a row from `start` on."""
    return cls(*row[start : start + len(names_of(cls))])


@lru_cache(maxsize=4096)
def variant_of(document: str) -> Variant:
    """A variant from its document."""
    return rebuild(Variant, json.loads(document))


@lru_cache(maxsize=1024)
def frozen_of(document: str, digest: str) -> FrozenRelease:
    """A frozen release from its row. Raises AlteredError when the document is not the one of the digest.

    What was written stays its document, whatever a later version would write for the same value.
    """
    return _as_written(FrozenRelease, document, digest)


def frozen_template_of(document: str, digest: str) -> FrozenTemplate:
    """A frozen Template from its row; the same. It is large and read once or twice, so it is not kept."""
    return _as_written(FrozenTemplate, document, digest)


def preparation_of(document: str) -> Preparation:
    """A Template's content from its document."""
    return rebuild(Preparation, json.loads(document))


def _as_written(cls: type[T], document: str, digest: str) -> T:
    written = document.encode()
    if sha256(written) != digest:
        raise AlteredError(f"what was frozen differs from its digest {digest}")
    frozen = rebuild(cls, json.loads(document))
    vars(frozen)["document"] = written
    return frozen


_SESSION, _ALLOCATION = columns_of(Session, sessions), columns_of(Allocation, allocations)
_any = allocations.alias()
_newest = select(func.max(_any.c.ordinal)).where(_any.c.session == sessions.c.id).scalar_subquery()

SESSION_RECORDS: Select[Any] = (
    select(*_SESSION, frozen_releases.c.document, frozen_releases.c.digest, snapshots.c.id, *_ALLOCATION)
    .select_from(sessions)
    .join(frozen_releases, frozen_releases.c.id == sessions.c.frozen)
    .outerjoin(allocations, (allocations.c.session == sessions.c.id) & (allocations.c.ordinal == _newest))
    .outerjoin(snapshots, (snapshots.c.session == sessions.c.id) & is_kept)
)
"""Sessions, each with its frozen release, its newest allocation and what is kept of it."""


def session_record(row: Sequence[Any]) -> SessionRecord:
    """A row of SESSION_RECORDS. Raises AlteredError as `frozen_of`."""
    at = len(_SESSION)
    document, digest, snapshot, allocation = row[at : at + 4]
    return SessionRecord(
        session=noun(Session, row),
        frozen=frozen_of(document, digest),
        allocation=None if allocation is None else noun(Allocation, row, at + 3),
        snapshot=snapshot,
    )
