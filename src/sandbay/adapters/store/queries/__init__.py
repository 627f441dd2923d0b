"""The answers: one function per class of query, found by its type."""

from typing import TypeVar, cast

from sqlalchemy import Connection

from sandbay.adapters.store.queries import (
    catalog,
    channels,
    contracts,
    fleet,
    projects,
    publishes,
    records,
    sessions,
    snapshots,
    standing,
    templates,
)
from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.ports.store import Query

T = TypeVar("T")

ANSWERS: Answers = {
    **catalog.ANSWERS,
    **channels.ANSWERS,
    **contracts.ANSWERS,
    **fleet.ANSWERS,
    **projects.ANSWERS,
    **publishes.ANSWERS,
    **records.ANSWERS,
    **sessions.ANSWERS,
    **snapshots.ANSWERS,
    **standing.ANSWERS,
    **templates.ANSWERS,
}


def answer(connection: Connection, query: Query[T]) -> T:
    """The answer, all of it from the connection's transaction."""
    return cast("T", ANSWERS[type(query)](connection, query))
