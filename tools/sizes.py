"""Check that functions stay within 40 lines and modules within 400, exceptions listed by name."""

import ast
import pathlib
from collections.abc import Iterator

from tools.machine import ROOT

_FUNCTION_LINES = 40
_MODULE_LINES = 400
_EXCEPTIONS = ROOT / "rules" / "size-exceptions.txt"


def problems() -> list[str]:
    """Return one line per thing that is too long, and per exception that is no longer needed."""
    excused = _exceptions()
    long = {name: size for folder in ("src", "tools", "bench") for name, size in _too_long(ROOT / folder)}
    return [
        *(f"{name}: {size} lines; split it along its decisions" for name, size in long.items() if name not in excused),
        *(f"{name}: listed in {_EXCEPTIONS.name}, but not too long any more" for name in excused if name not in long),
    ]


def _exceptions() -> list[str]:
    lines = (line.partition("#")[0].strip() for line in _EXCEPTIONS.read_text().splitlines())
    return [line for line in lines if line]


def _too_long(folder: pathlib.Path) -> Iterator[tuple[str, int]]:
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        text = path.read_text()
        if (lines := len(text.splitlines())) > _MODULE_LINES:
            yield name, lines
        for function, size in _functions(ast.parse(text), ""):
            if size > _FUNCTION_LINES:
                yield f"{name}::{function}", size


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted name and the lines of every function, those in classes and functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, (child.end_lineno or child.lineno) - child.lineno + 1
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)
