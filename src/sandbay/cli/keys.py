"""`sandbay keys`: what agents and scripts of a project authenticate with."""

from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.resources import Key

app = typer.Typer(help="Keys of a project.", no_args_is_help=True, rich_markup_mode=None)

Project = Annotated[str, typer.Option("--project", metavar="P", help="The project, by name or id.")]
_DEFAULT = "default"  # the project that `sandbay up` makes


@app.command()
def ls(*, project: Project = _DEFAULT, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List a project's keys, without their secrets."""
    with connect.administrator() as admin:
        found = admin.projects.keys(project)
    head = ["ID", "NAME", "PRINCIPAL", "HELD TO", "CREATED", "REVOKED"]
    listing.show(found, head, _row, lambda key: key.id, as_json=as_json, quiet=quiet)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")],
    *,
    project: Project = _DEFAULT,
    principal: Annotated[str | None, typer.Option(help="Who acts with it, for the audit; otherwise NAME.")] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="KIND:REF", help="Hold it to this scope and all below, for good.")
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Hold it to this agent, for good; may be repeated.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a key and show it this once. With -q standard output is the key and nothing else."""
    with connect.administrator() as admin:
        made = admin.projects.create_key(project, name, principal=principal, scope=scope, agents=agent)
    if as_json:
        render.document(made.raw)
        return
    render.line(made.secret)
    if not quiet:
        render.note(f"This key ({made.id}) is shown this once. It goes into SANDBAY_API_KEY.")


@app.command()
def rm(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its id, as `sandbay keys ls` shows it.")],
    *,
    project: Project = _DEFAULT,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Revoke a key. It works nowhere from now on."""
    with connect.administrator() as admin:
        admin.projects.revoke_key(project, key)
    if as_json:
        render.document({"revoked": key})
    elif not quiet:
        render.line(f"{key} is revoked")


def _row(key: "Key") -> list[object]:
    created, revoked = listing.times(key.created_at), listing.times(key.revoked_at)
    held = " ".join(it for it in (key.scope, *(key.agents or ())) if it)
    return [key.id, key.name, key.principal, held or None, created, revoked]
