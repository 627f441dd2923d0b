"""What a run came to: a table for eyes, JSON for programs."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import Figure, Target

_COLUMNS = ("", "figure", "must", "aim", "measured", "verdict", "ours", "baseline")


def table(figures: Sequence[Figure]) -> str:
    """One line per figure, then the baselines' commands and the notes."""
    rows = [_COLUMNS, *map(_row, figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    said = dict.fromkeys(f"  {it.bench}  {it.command}" for it in figures if it.command)
    notes = dict.fromkeys(f"  {it.bench}  {it.note}" for it in figures if it.note)
    return "\n".join([*lines, "", "baselines:", *said, *(["", "notes:", *notes] if notes else [])])


def write(figures: Sequence[Figure], folder: Path) -> Path:
    """Write everything as JSON; the new file."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    machine = {
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
    rows = [asdict(figure) | {"verdict": figure.verdict} for figure in figures]
    path = folder / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps({"at": now.isoformat(), "machine": machine, "figures": rows}, indent=1) + "\n")
    return path


def _row(figure: Figure) -> tuple[str, ...]:
    target = figure.target
    value = "-" if figure.value is None else f"{figure.value:.3g}{target.unit}"
    bounds = (_bound(target, target.must), _bound(target, target.aim))
    return (figure.bench, figure.what, *bounds, value, figure.verdict, figure.ours, figure.theirs)


def _bound(target: Target, bound: float) -> str:
    return f"{'≥' if target.at_least else '≤'} {bound:g}{target.unit}"
