"""`sandbay deployment`: where Sessions run, and on what when nobody says."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandbay.cli import completion, connect, options, pools, render
from sandbay.cli.failures import CommandError

if TYPE_CHECKING:
    from sandbay.sdk.resources import Deployment

app = typer.Typer(help="Where Sessions run.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def show(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show the deployment: default image, platform, pools in order."""
    with connect.administrator() as admin:
        found = admin.deployment.get()
    _shown(found, as_json=as_json, quiet=quiet)


@app.command("set")
def change(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The whole deployment, as `show --json` prints it; - reads.")
    ] = None,
    *,
    default_image: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The image of Sessions that name none.", autocompletion=completion.images),
    ] = None,
    no_default_image: Annotated[bool, typer.Option("--no-default-image", help="Sessions have to name one.")] = False,
    default_platform: Annotated[str | None, typer.Option(metavar="P", help="As linux/amd64.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Change the deployment: what the options say, or all of it from a file.

    A file that somebody else's change has overtaken is refused: it names the generation that it was made from.
    """
    if default_image is not None and no_default_image:
        raise typer.BadParameter("give --default-image or --no-default-image, not both")
    if file is None and default_image is None and not no_default_image and default_platform is None:
        raise typer.BadParameter("say what to change, or give a FILE")
    with connect.administrator() as admin:
        wanted = dict(admin.deployment.get().raw) if file is None else _read(file)
        if default_image is not None or no_default_image:
            wanted["default_image"] = default_image
        if default_platform is not None:
            wanted["default_platform"] = default_platform
        changed = admin.deployment.put(
            expected_generation=wanted["generation"],
            default_image=wanted["default_image"],
            default_platform=wanted["default_platform"],
            pools=wanted["pools"],
        )
    _shown(changed, as_json=as_json, quiet=quiet)


def _read(file: str) -> dict[str, Any]:
    text = sys.stdin.read() if file == "-" else Path(file).read_text()
    try:
        wanted = json.loads(text)
        complete = {"generation", "default_image", "default_platform", "pools"} <= wanted.keys()
    except (ValueError, AttributeError):
        complete, wanted = False, {}
    if not complete:
        message = f"{file} is no deployment: it has generation, default_image, default_platform and pools"
        raise CommandError("invalid_body", message, next_step="Start from this: sandbay deployment show --json")
    return dict(wanted)


def _shown(found: "Deployment", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(found.raw)
    elif quiet:
        for pool in found.pools:
            render.line(pool.get("name"))
    else:
        render.line("generation", found.generation)
        render.line("default image", found.default_image or "-")
        render.line("default platform", found.default_platform)
        render.table(pools.HEAD, map(pools.row, found.pools))
