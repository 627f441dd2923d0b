"""`sandbay templates`: what a project's Sessions are prepared with."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandbay.cli import connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.templates import Template

app = typer.Typer(help="What Sessions are prepared with.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name, or tmp_….")]
Source = Annotated[
    str,
    typer.Argument(metavar="FILE|DIR|-", help="TOML or JSON; a folder with template.toml, files/, skills/, plugins/."),
]


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the Templates of the project of the key at hand."""
    with connect.project() as client:
        found = client.templates.list()
    head = ["NAME", "IMAGE", "RUNS NOW", "REVISION", "UPDATED"]
    listing.show(found, head, _row, lambda template: template.name, as_json=as_json, quiet=quiet)


@app.command()
def get(name: Name, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show a Template."""
    with connect.project() as client:
        _say(client.templates.get(name), as_json=as_json, quiet=quiet)


@app.command()
def create(
    source: Source,
    *,
    name: Annotated[str | None, typer.Option(help="Instead of the one that the document says.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Make a Template. What would refuse a Session of it refuses it now."""
    said = _read(source)
    called = name or said.get("name")
    if not called:
        raise typer.BadParameter("the document says no name; give one with --name", param_hint="--name")
    with connect.project() as client:
        _say(client.templates.create(called, said), as_json=as_json, quiet=quiet)


@app.command()
def update(
    name: Name,
    source: Source,
    *,
    expected_revision: Annotated[int | None, typer.Option(help="Refuse if it has another one by now.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Change what the document says; what it does not mention stays. Sessions that are there stay, too."""
    said = _read(source)
    with connect.project() as client:
        changed = client.templates.update(name, said, expected_revision=expected_revision)
        _say(changed, as_json=as_json, quiet=quiet)


@app.command()
def rm(name: Name, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Forget a Template. Sessions keep what they were admitted with."""
    with connect.project() as client:
        client.templates.delete(name)
    if as_json:
        render.document({"deleted": name})
    elif not quiet:
        render.line(f"{name}: deleted")


def _read(source: str) -> dict[str, Any]:
    from sandbay.sdk import templates

    return templates.parse(sys.stdin.buffer.read()) if source == "-" else templates.read(source)


def _row(template: "Template") -> list[object]:
    return [template.name, template.runtime_image_id, _runs(template), template.revision, template.updated_at]


def _runs(template: "Template") -> str:
    if template.image is None:
        return str((template.refusal or {}).get("code", ""))
    return f"{template.image.name}:{template.image.release}"


def _say(template: "Template", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(template.raw)
        return
    if quiet:
        render.line(template.id)
        return
    render.line(template.id, template.name, f"revision {template.revision}", "runs", _runs(template))
    if template.upgrade_available:
        render.note(f"{template.upgrade_available} is there by now; nothing moves what is pinned")
    for warning in template.warnings:
        render.note(f"warning: {warning}")
