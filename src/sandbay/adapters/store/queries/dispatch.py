"""How an answer is found."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from sandbay.ports.store import Query

Answers = Mapping[type[Query[Any]], Callable[[Connection, Any], Any]]
"""Class of query → the function that answers it."""
