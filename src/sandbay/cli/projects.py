"""`sandbay projects`: the tenants, and the image that a project prefers."""

from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import completion, connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.resources import Project

app = typer.Typer(help="Projects, the tenants.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the projects of the installation."""
    with connect.administrator() as admin:
        found = admin.projects.list()
    listing.show(
        found,
        ["NAME", "ID", "IMAGE"],
        lambda project: [project.name, project.id, project.runtime_image_id],
        lambda project: project.name,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and -.")],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a project. It has no key yet: `sandbay keys create NAME --project PROJECT`."""
    with connect.administrator() as admin:
        made = admin.projects.create(name)
    _shown(made, as_json=as_json, quiet=quiet)


@app.command()
def show(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show the project of the key at hand."""
    with connect.project() as client:
        found = client.project()
    _shown(found, as_json=as_json, quiet=quiet)


@app.command("set")
def change(
    *,
    image: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The image of Sessions that name none.", autocompletion=completion.images),
    ] = None,
    no_image: Annotated[bool, typer.Option("--no-image", help="Leave it to the deployment's default.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Set or clear the image that the project of the key at hand prefers. What is refused changes nothing."""
    if (image is None) == (not no_image):
        raise typer.BadParameter("give either --image REF or --no-image")
    with connect.project() as client:
        changed = client.set_project_image(image)
    _shown(changed, as_json=as_json, quiet=quiet)


@app.command("scope-required")
def scope_required(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The project, by name or id.")],
    *,
    off: Annotated[bool, typer.Option("--off", help="Its Sessions may leave the scope out again.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Have each Session of a project name its scope, so that none is without the ceilings of one."""
    with connect.administrator() as admin:
        changed = admin.projects.change(project, scope_required=not off)
    _shown(changed, as_json=as_json, quiet=quiet)


def _shown(project: "Project", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(project.raw)
    elif quiet:
        render.line(project.name)
    else:
        render.line(project.name, project.id, f"image {project.runtime_image_id or '-'}")
