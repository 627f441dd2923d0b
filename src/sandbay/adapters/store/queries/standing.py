"""Scopes with their parents, and what stands under subjects."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, String, Table, bindparam, cast, literal, or_, select, tuple_

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, names_of, noun
from sandbay.adapters.store.standing_tables import allow_lists, bindings, grants, overrides, scopes
from sandbay.domain.binding import Binding, Written
from sandbay.domain.ceiling import AllowListAt, Grant, OverrideAt, Standing
from sandbay.domain.ids import ImageId
from sandbay.domain.path import Subject
from sandbay.domain.scope import DEEPEST, Lineage, Scope, lineage_of
from sandbay.ports.standing import LineageOf, RowsOf, Scopes, Standard, StandingOf

TABLES: Mapping[type[Standard], Table] = {
    Binding: bindings,
    AllowListAt: allow_lists,
    OverrideAt: overrides,
    Grant: grants,
}
"""Where the rows of each kind are."""


def _upwards() -> Any:
    row = columns_of(Scope, scopes)
    up = select(*row, literal(1).label("depth")).where(scopes.c.name == bindparam("key")).cte(recursive=True)
    # One more than a path has, so that rows which no change could have written end somewhere, too.
    above = select(*row, up.c.depth + 1).join(up, scopes.c.name == up.c.parent).where(up.c.depth <= DEEPEST)
    found = up.union(above)
    return select(*(found.c[name] for name in names_of(Scope)))


def _downwards() -> Any:
    down = select(scopes.c.name).where(scopes.c.name == bindparam("below")).cte(recursive=True)
    return down.union(select(scopes.c.name).join(down, scopes.c.parent == down.c.name))


_LINEAGE = _upwards()
_BELOW = _downwards()
_SCOPES = select(*columns_of(Scope, scopes)).order_by(scopes.c.name)


def lineage(connection: Connection, name: str) -> Lineage:
    """The scope and its parents as they are now, narrowest first; empty when it is not registered."""
    rows = (noun(Scope, row) for row in connection.execute(_LINEAGE, {"key": name}))
    return lineage_of(name, {scope.name: scope for scope in rows})


def _lineage_of(connection: Connection, query: LineageOf) -> Lineage:
    return lineage(connection, query.name)


def _scopes(connection: Connection, query: Scopes) -> Sequence[Scope]:
    statement = _SCOPES.limit(query.page.limit)
    if query.project is not None:
        statement = statement.where(or_(scopes.c.project == query.project, scopes.c.project.is_(None)))
    if query.below is not None:
        statement = statement.where(scopes.c.name.in_(select(_BELOW.c.name)))
    if query.page.after is not None:
        statement = statement.where(scopes.c.name > query.page.after)
    values = {} if query.below is None else {"below": query.below}
    return tuple(noun(Scope, row) for row in connection.execute(statement, values))


def _columns(kind: type[Standard]) -> Sequence[Any]:
    """What is said, then what is written of it."""
    said = (name for name in names_of(kind) if name != "written")
    return tuple(TABLES[kind].c[name] for name in (*said, *names_of(Written)))


def _row(kind: Any, row: Sequence[Any]) -> Any:
    at = len(row) - len(names_of(Written))
    return kind(*row[:at], noun(Written, row, at))


_ALL = {kind: select(*_columns(kind)).order_by(*table.primary_key.columns) for kind, table in TABLES.items()}
_UNDER = {
    kind: statement.where(TABLES[kind].c.subject.in_(bindparam("subjects", expanding=True)))
    for kind, statement in _ALL.items()
}


def _rows_of(connection: Connection, query: RowsOf[Any]) -> Sequence[Any]:
    table = TABLES[query.kind]
    statement = _ALL[query.kind].limit(query.page.limit)
    if query.subject is not None:
        statement = statement.where(table.c.subject == query.subject)
    if query.page.after is not None:
        words = [literal(word) for word in query.page.after.split(" ")]
        columns = [cast(column, String) for column in table.primary_key.columns][: len(words)]
        statement = statement.where(tuple_(*columns) > tuple_(*words))
    return tuple(_row(query.kind, row) for row in connection.execute(statement))


def _standing_of(connection: Connection, query: StandingOf) -> Standing:
    def under(kind: type[Any]) -> Sequence[Any]:
        found = connection.execute(_UNDER[kind], {"subjects": list(query.subjects)})
        return [_row(kind, row) for row in found]

    granted: dict[Subject, set[ImageId]] = defaultdict(set)
    for grant in under(Grant):
        granted[grant.subject].add(grant.image)
    return Standing(
        bindings={it.subject: it for it in under(Binding)},
        allowed={it.subject: it.allowed for it in under(AllowListAt)},
        overrides={it.subject: it.override for it in under(OverrideAt)},
        grants={subject: frozenset(images) for subject, images in granted.items()},
    )


ANSWERS: Answers = {
    LineageOf: _lineage_of,
    RowsOf: _rows_of,
    Scopes: _scopes,
    StandingOf: _standing_of,
}
