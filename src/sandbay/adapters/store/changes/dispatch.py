"""How a write is found."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from sandbay.ports.changes import Change

Writes = Mapping[type[Change], Callable[[Connection, Any], None]]
"""Class of change → the function that looks at what it relies on and writes it."""
