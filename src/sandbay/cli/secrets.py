"""`sandbay secrets`: what a project's Sessions have in their environment, and nobody is told."""

import sys
from typing import Annotated

import typer

from sandbay.cli import connect, listing, options, render

app = typer.Typer(help="Secrets of a project, for its Sessions.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits and _.-")]
Project = Annotated[str | None, typer.Option(help="Of this project, with an administrator key.")]


@app.command("set")
def put(name: Name, *, project: Project = None, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Keep a secret: its value is asked for, or read from standard input. It is shown to nobody."""
    value = typer.prompt("Value", hide_input=True, err=True) if sys.stdin.isatty() else _piped()
    with connect.secrets(project) as secrets:
        kept = secrets.put(name, value)
    if as_json:
        render.document(kept.raw)
    elif not quiet:
        render.line(f"{kept.name}: kept; a Session has it with --secret VARIABLE={kept.name}")


@app.command()
def ls(*, project: Project = None, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the names of a project's secrets."""
    with connect.secrets(project) as secrets:
        found = secrets.list()
    head = ["NAME", "SINCE"]
    listing.show(found, head, lambda it: [it.name, it.updated_at], lambda it: it.name, as_json=as_json, quiet=quiet)


@app.command()
def rm(name: Name, *, project: Project = None, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Forget a secret. What a Session would run with it is refused from then on."""
    with connect.secrets(project) as secrets:
        secrets.delete(name)
    if as_json:
        render.document({"deleted": name})
    elif not quiet:
        render.line(f"{name}: forgotten")


def _piped() -> str:
    """All of it but the end of its last line."""
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")
