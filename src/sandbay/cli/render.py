"""What people and programs read on standard output.

Texts come from images, sandboxes and other users: whatever could steer a terminal is shown as an escape.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_GAP = "  "
_STEP = 1024


def clean(text: object) -> str:
    """A text on one line, without anything that a terminal would act on."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in str(text))


def document(value: Any) -> None:
    """One JSON document."""
    print(json.dumps(value, indent=2))


def line(*parts: object) -> None:
    """One line for people; empty parts are left out."""
    print(_GAP.join(clean(part) for part in parts if part not in {None, ""}))


def note(text: str) -> None:
    """A remark on standard error."""
    print(clean(text), file=sys.stderr)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their widest cell; None is a dash."""
    cells = [list(head), *([clean("-" if cell is None else cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print(_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def size(count: float | None) -> str:
    """Bytes for people: `1.5 MiB`."""
    if count is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < _STEP:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    return f"{count:.1f} TiB"


def gone(name: str, *, as_json: bool, quiet: bool) -> None:
    """What was taken away."""
    if as_json:
        document({"deleted": name})
    elif not quiet:
        line(f"{name}: deleted")
