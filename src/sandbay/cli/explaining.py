"""`sandbay images explain`: which image a Session would get now, who decides it, and where it would go."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from sandbay.cli import completion, connect, options, render


def explain(
    reference: Annotated[
        str | None,
        typer.Argument(
            metavar="[REF]", help="What the Session would name; otherwise nothing.", autocompletion=completion.images
        ),
    ] = None,
    *,
    platform: options.Platform = None,
    template: options.Template = None,
    agent: options.Agent = None,
    scope: options.Scope = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what a create would decide now, and why. Nothing is made, and a "no" is an answer."""
    with connect.project() as client:
        found = client.images.explain(reference, platform=platform, template=template, agent=agent, scope=scope)
    if as_json:
        render.document(found)
    elif quiet:
        render.line(_image(found) or found["refusal"]["code"])
    else:
        _show(found)


def _image(found: Mapping[str, Any]) -> str | None:
    """`web:7`, or None when there is none."""
    chosen = found["resolved"]
    return None if chosen is None else f"{chosen['name']}:{chosen['release']}"


def _show(found: Mapping[str, Any]) -> None:
    chosen, refusal, placement = found["resolved"], found["refusal"], found["placement"]
    if chosen is not None:
        by = chosen["decided_by"]
        render.line(f"{'image':<12}", _image(found), chosen["digest"], chosen["platform"])
        render.line(f"{'decided by':<12}", by["level"], by["subject"])
    if refusal is not None:
        render.line(f"{'refused':<12}", f"{refusal['message']} ({refusal['code']})")
    if placement is not None:
        render.line(f"{'pool':<12}", placement["pool"] or f"none now ({placement['reason']})")
        for pool, counts in placement["pools"].items():
            told = ", ".join(f"{why} {count}" for why, count in counts.items())
            render.line(f"{'':<12}", f"{pool}: {told or 'no node'}")
    render.line()
    render.table(_HEAD, map(_step, found["trail"]))


_HEAD = ("LEVEL", "WHOSE", "SAYS", "BECAME", "WHY")


def _step(step: Mapping[str, Any]) -> tuple[object, ...]:
    said = f"{step['said']} (enforced)" if step.get("enforced") else step["said"]
    return step["level"], step["subject"], said, step["outcome"], step["reason"]
