"""`sandbay audit`: who did what; which release a Session ran, and why; and the whole of it as lines that hold."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandbay.cli import connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.account import SessionAccount

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

_HEAD = ["WHEN", "WHO", "ACTION", "SUBJECT", "OUTCOME", "DETAILS"]


@app.callback()
def audit(
    asked: typer.Context,
    *,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Which release this Session ran and why, and what was done to it.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this image, release, project, key or node.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The newest N entries.")] = 100,
    export: Annotated[bool, typer.Option("--export", help="All of it as JSON lines, for `audit verify`.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show every change and every refused attempt, newest first."""
    if asked.invoked_subcommand is not None:
        return
    if sum((session is not None, subject is not None, export)) > 1:
        raise typer.BadParameter("give one of --session, --subject and --export")
    if export:
        _export()
    elif session is not None:
        _account(session, as_json=as_json, quiet=quiet)
    else:
        _entries(subject, limit, as_json=as_json, quiet=quiet)


@app.command()
def verify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `audit --export` wrote.")],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """See whether an export is whole: nothing altered, taken out, put in, moved or cut off. Asks no installation."""
    from sandbay.sdk.chain import verify_audit

    try:
        with Path(file).open("rb") as lines:
            whole = verify_audit(lines)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}") from error
    if as_json:
        render.document({"entries": whole.entries, "head": whole.head})
    elif quiet:
        render.line(whole.head)
    else:
        render.line(f"{file} is whole: {whole.entries} entries, head {whole.head}")


def _entries(subject: str | None, limit: int, *, as_json: bool, quiet: bool) -> None:
    with connect.administrator() as admin:
        found = admin.audit(subject, limit=limit)
    if as_json:
        render.document({"items": [dict(entry) for entry in found]})
    elif quiet:
        for entry in found:
            render.line(entry.get("id"))
    else:
        render.table(_HEAD, map(_row, found))


def _export() -> None:
    with connect.administrator() as admin:
        for piece in admin.export_audit():
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _account(session: str, *, as_json: bool, quiet: bool) -> None:
    with connect.administrator() as admin:
        it = admin.audit_of_session(session)
    if as_json:
        render.document(it.raw)
    elif quiet:
        render.line(f"{it.image.get('name')}:{it.image.get('release')}")
    else:
        _show(it)


def _show(it: "SessionAccount") -> None:
    image, by = it.image, it.image.get("decided_by") or {}
    ended = f"ended {listing.times(it.ended_at)}" if it.ended_at else "lives"
    render.line(f"{'session':<12}", it.session, it.status, f"created {listing.times(it.created_at)}", ended)
    render.line(f"{'for':<12}", it.project, it.principal)
    render.line(f"{'ran':<12}", f"{image.get('name')}:{image.get('release')}", image.get("digest"))
    render.line(f"{'asked as':<12}", image.get("reference"))
    render.line(f"{'decided by':<12}", by.get("level"), by.get("subject"))
    render.line(f"{'frozen':<12}", it.frozen_digest)
    for step in it.trail:
        render.line(f"{'':<12}", *(step.get(name) for name in ("level", "outcome", "subject", "said", "reason")))
    render.line()
    render.table(_HEAD, map(_row, it.entries))


def _row(entry: Mapping[str, Any]) -> list[object]:
    when = str(entry.get("at", "")).partition(".")[0].removesuffix("Z").replace("T", " ")
    details = json.dumps(entry["details"], ensure_ascii=False) if entry.get("details") else None
    return [when, *(entry.get(name) for name in ("principal", "action", "subject", "outcome")), details]
