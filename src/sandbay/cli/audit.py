"""`sandbay audit`: who did what."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from sandbay.cli import connect, options, render


def audit(
    *,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only of this Session.")] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this image, release, project, key or node.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The newest N entries.")] = 100,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show every change and every refused attempt, newest first."""
    if session is not None and subject is not None:
        raise typer.BadParameter("give --session or --subject, not both")
    with connect.administrator() as admin:
        found = admin.audit(session or subject, limit=limit)
    if as_json:
        render.document({"items": [dict(entry) for entry in found]})
    elif quiet:
        for entry in found:
            render.line(entry.get("id"))
    else:
        render.table(["WHEN", "WHO", "ACTION", "SUBJECT", "OUTCOME", "DETAILS"], map(_row, found))


def _row(entry: Mapping[str, Any]) -> list[object]:
    when = str(entry.get("at", "")).partition(".")[0].removesuffix("Z").replace("T", " ")
    details = json.dumps(entry["details"], ensure_ascii=False) if entry.get("details") else None
    return [when, *(entry.get(name) for name in ("principal", "action", "subject", "outcome")), details]
