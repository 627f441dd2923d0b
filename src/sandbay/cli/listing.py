"""How every list is shown: a table for people, names for `-q`, `{"items": […]}` for programs."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from sandbay.cli import render


class Raw(Protocol):
    """What a list is made of: the SDK's resources."""

    @property
    def raw(self) -> Any:
        """The JSON as it came."""


Item = TypeVar("Item", bound=Raw)


def show(
    items: Sequence[Item],
    head: Sequence[str],
    row: Callable[[Item], Sequence[object]],
    name: Callable[[Item], object],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print them. `row` gives the cells under `head`, `name` what `-q` shows."""
    if as_json:
        render.document({"items": [item.raw for item in items]})
    elif quiet:
        for item in items:
            render.line(name(item))
    else:
        render.table(head, map(row, items))


def times(moment: Any) -> str | None:
    """A time for people, in UTC."""
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
