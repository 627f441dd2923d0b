"""`sandbay nodes`: the processes that run sandboxes."""

from typing import TYPE_CHECKING

import typer

from sandbay.cli import connect, listing, options

if TYPE_CHECKING:
    from sandbay.sdk.resources import Node

app = typer.Typer(help="Nodes, which run sandboxes.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def nodes() -> None:
    """The processes that run sandboxes."""


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List all nodes, those that are away included."""
    with connect.administrator() as admin:
        found = admin.nodes.list()
    head = ["NAME", "STATE", "PROVIDER", "RUNTIME", "PLATFORM", "SANDBOXES", "LAST SEEN", "ID"]
    listing.show(found, head, _row, lambda node: node.name, as_json=as_json, quiet=quiet)


def _row(node: "Node") -> list[object]:
    state = "away" if not node.online else "ready" if node.warm else "preparing images"
    sandboxes, seen = f"{node.active} of {node.slots}", listing.times(node.last_seen)
    return [node.name, state, node.provider, node.runtime, node.platform, sandboxes, seen, node.id]
