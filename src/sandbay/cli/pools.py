"""`sandbay pools`: where Sessions run, in the order in which it is tried."""

from collections.abc import Mapping
from typing import Any

import typer

from sandbay.cli import connect, options, render

app = typer.Typer(help="Pools of nodes.", no_args_is_help=True, rich_markup_mode=None)
HEAD = ["POOL", "PROVIDER", "PLATFORM", "SIZE", "ADMISSION"]


@app.callback()
def pools() -> None:
    """Ordered sets of nodes, each with one provider, platform and size of sandbox."""


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the deployment's pools in order. `sandbay deployment set` changes them."""
    with connect.administrator() as admin:
        found = admin.deployment.get().pools
    if as_json:
        render.document({"items": [dict(pool) for pool in found]})
    elif quiet:
        for pool in found:
            render.line(pool.get("name"))
    else:
        render.table(HEAD, map(row, found))


def row(pool: Mapping[str, Any]) -> list[object]:
    """A pool under `HEAD`."""
    return [
        pool.get("name"),
        pool.get("provider"),
        pool.get("platform"),
        _size(pool.get("size")),
        pool.get("admission"),
    ]


def _size(value: object) -> str:
    """`{cpus, memory, pids}` on one line."""
    if not isinstance(value, dict):
        return "-"
    memory = value.get("memory")
    parts = [
        "" if value.get("cpus") is None else f"{value['cpus']} cpus",
        render.size(memory) if isinstance(memory, int) else "",
        "" if value.get("pids") is None else f"{value['pids']} pids",
    ]
    return ", ".join(part for part in parts if part) or "-"
