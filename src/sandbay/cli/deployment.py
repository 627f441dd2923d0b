"""`sandbay deployment`: where Sessions run, and on what when nobody says."""

import typer

from sandbay.cli import connect, options, render

app = typer.Typer(help="Where Sessions run.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def deployment() -> None:
    """Where Sessions run, and on which image when nobody names one."""


@app.command()
def show(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show the deployment: default image, platform, pools in order."""
    with connect.administrator() as admin:
        found = admin.deployment.get()
    if as_json:
        render.document(found.raw)
    elif quiet:
        for pool in found.pools:
            render.line(pool.get("name"))
    else:
        render.line("generation", found.generation)
        render.line("default image", found.default_image or "-")
        render.line("default platform", found.default_platform)
        columns = ("name", "provider", "platform", "size", "admission")
        rows = (
            [_size(pool.get(name)) if name == "size" else pool.get(name) for name in columns] for pool in found.pools
        )
        render.table(["POOL", *(name.upper() for name in columns[1:])], rows)


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
