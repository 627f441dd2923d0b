"""`sandbay images readiness`: what each node holds of an image, once or as it changes."""

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import completion, connect, options, render

if TYPE_CHECKING:
    from sandbay.sdk._sync.catalog import Images
    from sandbay.sdk.resources import Readiness

Line = tuple[str, "Readiness"]
"""An image's name, and what one node says of one release of it."""

_EVERY = 1.0
_HEAD = ["IMAGE", "RELEASE", "NODE", "STATE", "BYTES", "ATTEMPT", "WHY"]


def readiness(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One image; otherwise all.", autocompletion=completion.images),
    ] = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Go on and show what changes, until Ctrl-C.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what each node holds of an image.

    With --watch and --json each change is a JSON document on one line.
    """
    with connect.administrator() as admin:
        if watch:
            _watch(admin.images, name, as_json=as_json, quiet=quiet)
        found = _look(admin.images, name)
    if as_json:
        render.document({"items": [_document(line) for line in found]})
    elif quiet:
        for line in found:
            render.line(*_short(line))
    else:
        render.table(_HEAD, map(_row, found))


def _watch(catalog: "Images", name: str | None, *, as_json: bool, quiet: bool) -> None:
    """Show each line again when it is another one than before; until the process is told to stop."""
    seen: dict[tuple[object, ...], Sequence[object]] = {}
    while True:
        for image, line in _look(catalog, name):
            key, now = (image, line.release, line.node), _row((image, line))
            if seen.get(key) == now:
                continue
            seen[key] = now
            if as_json:
                print(json.dumps(_document((image, line))), flush=True)
            else:
                render.line(*(_short((image, line)) if quiet else now))
        time.sleep(_EVERY)


def _look(catalog: "Images", name: str | None) -> list[Line]:
    names = [image.name for image in catalog.list()] if name is None else [name]
    return [(image, line) for image in names for line in catalog.readiness(image)]


def _document(line: Line) -> dict[str, object]:
    return {"image": line[0], **line[1].raw}


def _short(line: Line) -> Sequence[object]:
    return [line[0], line[1].node, line[1].state]


def _row(line: Line) -> Sequence[object]:
    image, said = line
    done = f"{render.size(said.bytes_done)} of {render.size(said.bytes_total)}" if said.bytes_total else None
    why = None if said.fault is None else f"{said.fault.message} ({said.fault.code})"
    return [image, said.release, said.node, said.state, done, said.attempt, why]
