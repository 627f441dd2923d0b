"""Statements of the hottest path, with their text and conversions worked out once for each engine.

SQLAlchemy finds both anew at each execution, which costs more than what SQLite then does. Its tables, types and errors
stay the ones that are used; what comes back is as the driver has it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, CursorResult, Insert, Select
from sqlalchemy.engine import Dialect

Values = Mapping[str, Any]
Plan = tuple[str, Callable[[Values], Any]]
"""The text, and from values by name to parameters as the driver takes them."""


class Prepared:
    """One statement. The values of an insert always have the same names."""

    def __init__(self, statement: Select[Any] | Insert) -> None:
        """Work nothing out yet: which database it is for is not known."""
        self._statement = statement
        self._plans: WeakKeyDictionary[Dialect, Plan] = WeakKeyDictionary()

    def __call__(self, connection: Connection, values: Values) -> CursorResult[Any]:
        """Execute it."""
        plan = self._plans.get(connection.dialect)
        if plan is None:
            plan = self._plans[connection.dialect] = self._planned(connection.dialect, list(values))
        text, parameters = plan
        return connection.exec_driver_sql(text, parameters(values))

    def row(self, connection: Connection, values: Values) -> Sequence[Any]:
        """Execute it; the one row that comes back."""
        return self(connection, values).one()

    def _planned(self, dialect: Dialect, names: Sequence[str]) -> Plan:
        columns = names if isinstance(self._statement, Insert) else None
        compiled = self._statement.compile(dialect=dialect, column_keys=columns)
        fixed = {name: bind.effective_value for name, bind in compiled.binds.items()}
        convert = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()
        }

        def converted(values: Values, name: str) -> Any:
            value, process = values.get(name, fixed[name]), convert[name]
            return value if process is None else process(value)

        if compiled.positiontup is None:
            return str(compiled), lambda values: {name: converted(values, name) for name in fixed}
        order = tuple(compiled.positiontup)
        return str(compiled), lambda values: tuple(converted(values, name) for name in order)
