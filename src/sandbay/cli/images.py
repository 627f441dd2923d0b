"""`sandbay images`: the catalog."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandbay.cli import (
    channels,
    checking,
    connect,
    disk,
    explaining,
    listing,
    options,
    readiness,
    render,
    supposing,
    verifying,
)
from sandbay.cli.progress import Bar
from sandbay.cli.sources import named_values, one_source

if TYPE_CHECKING:
    from sandbay.sdk.catalog import Asked
    from sandbay.sdk.releases import Release, Variant
    from sandbay.sdk.resources import Image


class Tier(StrEnum):
    """Who may use an image: everybody, or whom it is granted."""

    STANDARD = "standard"
    RESTRICTED = "restricted"


app = typer.Typer(help="The catalog: images, releases, channels.", no_args_is_help=True, rich_markup_mode=None)
app.command()(readiness.readiness)
app.command()(explaining.explain)
app.command("what-if")(supposing.what_if)
app.command()(channels.promote)
app.command()(channels.promotions)
app.command()(channels.abort)
app.command()(channels.rollback)
app.command()(channels.history)
app.command()(checking.check)
app.command()(verifying.verify)
app.command()(disk.df)

_STEP_WIDTH = 80

Node = Annotated[str | None, typer.Option(help="Only on this node.")]
Archive = Annotated[
    str | None, typer.Option(metavar="FILE[:TAG]", help="A tar of an OCI layout, or what `docker save` wrote.")
]
Registry = Annotated[str | None, typer.Option(metavar="REF", help="HOST/REPOSITORY[:TAG][@DIGEST] of an OCI registry.")]
Artifacts = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="What a provider knows it by; may be repeated.")
]


@app.command()
def register(  # noqa: PLR0913 - a fixed form of the command line
    name: Annotated[str, typer.Argument(metavar="NAME", help="The image; it is made when it is missing.")],
    *,
    from_layout: Annotated[str | None, typer.Option(metavar="DIR[:TAG]", help="An OCI layout folder.")] = None,
    from_archive: Archive = None,
    from_registry: Registry = None,
    artifact: Artifacts = None,
    platform: Annotated[list[str] | None, typer.Option(help="Only this platform; may be repeated.")] = None,
    provider: Annotated[list[str] | None, typer.Option(help="Only for this provider; may be repeated.")] = None,
    source_commit: Annotated[str | None, typer.Option(help="Where it was built from.")] = None,
    tool: options.Tools = None,
    promote: Annotated[str | None, typer.Option(metavar="CHANNEL", help="Point this channel to it.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is active or refused.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Register a new release of an image. The same content again is the same release."""
    artifacts = named_values(artifact)
    source = one_source(artifacts, layout=from_layout, archive=from_archive, registry=from_registry)
    with connect.administrator() as admin, Bar(name, quiet=quiet or as_json, phase="registering") as bar:
        asked: Asked = {
            "platforms": platform or (),
            "providers": provider or (),
            "source_commit": source_commit,
            "promote": promote,
            "tools": options.tools(tool),
            "artifacts": artifacts,
        }
        release = source(admin.images, name, bar.update, asked)
        if wait:
            release = admin.images.wait_active(name, release.number, progress=bar.update)
    if as_json:
        render.document(release.raw)
    elif quiet:
        render.line(f"{name}:{release.number}")
    else:
        render.line(f"{name}:{release.number}", release.state, *(variant.digest or "-" for variant in release.variants))


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the images."""
    with connect.administrator() as admin:
        found = admin.images.list()
    head = ["NAME", "STATE", "CHANNELS", "RELEASES", "DESCRIPTION"]
    listing.show(found, head, _row, lambda image: image.name, as_json=as_json, quiet=quiet)


@app.command()
def inspect(reference: options.Ref, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show an image, and the release that the reference means."""
    with connect.administrator() as admin:
        from sandbay.sdk.references import parse

        asked = parse(reference)
        image = admin.images.get(asked.name)
        release = None if asked.is_whole_image and "stable" not in image.channels else admin.images.release(reference)
    if as_json:
        render.document({"image": image.raw, "release": None if release is None else release.raw})
    elif quiet:
        render.line(image.id if release is None else release.id)
    else:
        _show(image, release)


@app.command()
def evict(
    reference: options.Ref,
    *,
    node: Node = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Drop an image's bytes from the nodes, as far as nothing needs them."""
    with connect.administrator() as admin, Bar(reference, quiet=quiet or as_json, phase="evicting"):
        done = admin.images.evict(reference, node=node)
    if as_json:
        render.document(done.raw)
    elif not quiet:
        for entry in done.evicted:
            render.line("evicted", entry.get("release"), f"from {entry.get('node')}")
        for entry in done.kept:
            render.line("kept", entry.get("release"), f"on {entry.get('node')}:", entry.get("why"))


@app.command()
def preload(
    reference: options.Ref,
    *,
    node: Node = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Have nodes fetch an image ahead of its first Session. Where it has failed it is tried again at once."""
    with connect.administrator() as admin:
        admin.images.preload(reference, node=node)
    _done({"preload": reference, "node": node}, f"{reference} will be fetched", as_json=as_json, quiet=quiet)


@app.command()
def retire(reference: options.Ref, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Take no new Sessions on an image, or on one release; those that live go on."""
    with connect.administrator() as admin:
        admin.images.retire(reference)
    _done({"retired": reference}, f"{reference} takes no new Sessions", as_json=as_json, quiet=quiet)


@app.command()
def deprecate(reference: options.Ref, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Advise against an image, or against one release; it still works."""
    with connect.administrator() as admin:
        admin.images.deprecate(reference)
    _done({"deprecated": reference}, f"{reference} is advised against", as_json=as_json, quiet=quiet)


@app.command()
def reactivate(reference: options.Ref, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Take back `deprecate` or `retire`."""
    with connect.administrator() as admin:
        admin.images.reactivate(reference)
    _done({"reactivated": reference}, f"{reference} takes Sessions again", as_json=as_json, quiet=quiet)


@app.command()
def tier(
    image: options.ImageName,
    word: Annotated[Tier, typer.Argument(metavar="standard|restricted", help="A restricted image needs grants.")],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Restrict an image to whom it is granted, or open it again. Sessions that are there stay."""
    with connect.administrator() as admin:
        admin.images.set_tier(image, word.value)
    _done({"image": image, "tier": word.value}, f"{image} is {word.value}", as_json=as_json, quiet=quiet)


def _row(image: "Image") -> list[object]:
    channels = ", ".join(f"{name}→{channel.release}" for name, channel in image.channels.items())
    releases = ", ".join(map(str, image.releases))
    name = f"{image.name} (default)" if image.default else image.name
    return [name, image.state, channels or None, releases or None, image.description or None]


def _show(image: "Image", release: "Release | None") -> None:
    name, state, channels, releases, description = _row(image)
    for label, value in (("image", name), ("id", image.id), ("state", state), ("description", description)):
        render.line(f"{label:<12}", value or "-")
    for label, value in (("channels", channels), ("releases", releases)):
        render.line(f"{label:<12}", value or "-")
    if release is None:
        return
    render.line(f"{'release':<12}", f"{image.name}:{release.number}", release.id, release.state)
    if release.fault is not None:
        render.line(f"{'fault':<12}", f"{release.fault.message} ({release.fault.code})")
    for variant in release.variants:
        render.line(f"{variant.platform:<12}", variant.digest, render.size(variant.size), " ".join(variant.providers))
        if variant.source is not None:
            render.line(f"{'from':<12}", variant.source)
        _show_layers(variant)
    checking.show(release)


def _show_layers(variant: "Variant") -> None:
    """The layers from the bottom, between the steps that left none; without a history, the layers alone."""
    layers = variant.layers
    steps = [(step.created_by, step.layer) for step in variant.history] or [("", at) for at in range(len(layers))]
    rows = [
        [
            None if at is None else render.size(layers[at].size),
            None if at is None else layers[at].digest,
            by if len(by) <= _STEP_WIDTH else by[: _STEP_WIDTH - 1] + "…",
        ]
        for by, at in steps
    ]
    if rows:
        render.table(["SIZE", "LAYER", "CREATED BY"], rows)


def _done(facts: Mapping[str, Any], sentence: str, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(facts)
    elif not quiet:
        render.line(sentence)
