"""`sandbay images verify`: every byte looked at again, in the installation's store and on nodes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandbay.cli import connect, options, render
from sandbay.cli.failures import REFUSED
from sandbay.cli.progress import Bar

if TYPE_CHECKING:
    from sandbay.sdk.verification import Verification

Name = Annotated[
    str | None, typer.Argument(metavar="REF", help="An image, or a release of it; every image when omitted.")
]


def verify(
    reference: Name = None,
    *,
    node: Annotated[str | None, typer.Option(help="Only on this node.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look at every byte of an image again; what a node lost it fetches again. Exits with 125 unless all is whole."""
    with connect.administrator() as admin:
        found: list[Verification] = []
        for asked in [reference] if reference is not None else [image.name for image in admin.images.list()]:
            with Bar(asked, quiet=quiet or as_json, phase="verifying") as bar:
                found.append(admin.images.verify(asked, node=node, progress=bar.update))
    seen = _worst(found)
    if as_json:
        render.document({"seen": seen, "items": [it.raw for it in found]})
    elif quiet:
        render.line(seen)
    else:
        _show(found)
    if seen != _WHOLE:
        raise typer.Exit(REFUSED)


_WHOLE = "whole"


def _worst(found: "Sequence[Verification]") -> str:
    seen = {it.seen for it in found}
    return next((each for each in ("damaged", "unknown") if each in seen), _WHOLE)


def _show(found: "Sequence[Verification]") -> None:
    """A line for each image, then what is not whole, with what to do."""
    rows = [[it.image, it.seen, f"{_count(it.blobs)} blobs", f"{_count(it.nodes)} on nodes"] for it in found]
    if rows:
        render.table(["IMAGE", "SEEN", "WHOLE", ""], rows)
    for it in found:
        for what, each in [*(("blob", blob) for blob in it.blobs), *(("node", node) for node in it.nodes)]:
            if each.get("seen") == _WHOLE:
                continue
            where = each.get("digest") or f"{it.image}:{each.get('release')} on {each.get('node')}"
            fault = each.get("fault") or {}
            render.line(f"{each.get('seen')} {what}", f"{where}: {fault.get('message')} ({fault.get('code')})")
            if each.get("do"):
                render.line("", f"what to do: {each.get('do')}")


def _count(items: "Sequence[Mapping[str, Any]]") -> str:
    return f"{sum(it.get('seen') == _WHOLE for it in items)} of {len(items)}"
