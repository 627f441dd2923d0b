"""`sandbay scopes`: where in an organisation Sessions act."""

from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.selection import Scope

app = typer.Typer(help="Where in an organisation Sessions act.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="KIND:REF", help="Such as team:growth or room:deal-desk.")]
Parent = Annotated[str | None, typer.Option(metavar="KIND:REF", help="The scope that it stands below.")]


@app.command()
def ls(*, own: options.Own = False, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the scopes of the installation, or those that the key at hand may name."""
    if own:
        with connect.project() as client:
            found = client.scopes.list()
    else:
        with connect.administrator() as admin:
            found = admin.scopes.list()
    head = ["NAME", "PARENT", "PROJECT", "REVISION"]
    listing.show(found, head, _row, lambda scope: scope.name, as_json=as_json, quiet=quiet)


@app.command("set")
def change(
    name: Name,
    *,
    parent: Parent = None,
    project: Annotated[
        str | None, typer.Option(metavar="P", help="Whose it is, for good; otherwise every project may name it.")
    ] = None,
    own: options.Own = False,
    expected_revision: options.ExpectedRevision = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Register a scope, or move it below another parent. Sessions that are there stay what they are."""
    if own:
        if parent is None or project is not None:
            raise typer.BadParameter("with --own give --parent, one of the project's own scopes, and no --project")
        with connect.project() as client:
            made = client.scopes.put(name, parent=parent, expected_revision=expected_revision)
    else:
        with connect.administrator() as admin:
            made = admin.scopes.put(name, parent=parent, project=project, expected_revision=expected_revision)
    if as_json:
        render.document(made.raw)
    elif quiet:
        render.line(made.name)
    else:
        render.line(made.name, f"below {made.parent or '-'}", f"project {made.project or '-'}", made.revision)


@app.command()
def rm(name: Name, *, own: options.Own = False, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Forget a scope. Refused while a scope stands below it, anything under it, or a key is held to it."""
    if own:
        with connect.project() as client:
            client.scopes.delete(name)
    else:
        with connect.administrator() as admin:
            admin.scopes.delete(name)
    render.gone(name, as_json=as_json, quiet=quiet)


def _row(scope: "Scope") -> list[object]:
    return [scope.name, scope.parent, scope.project, scope.revision]
