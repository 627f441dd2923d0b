"""`sandbay images publish` and `sandbay publishes`: releases from folders."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import connect, options, render
from sandbay.cli.progress import Bar

if TYPE_CHECKING:
    from sandbay.sdk.publishes import Base, Publish, Publishing, PublishPlan

app = typer.Typer(help="Publishes, under way and past.", no_args_is_help=True, rich_markup_mode=None)

Id = Annotated[str, typer.Argument(metavar="ID", help="A publish, as pub_….")]


def publish(  # noqa: PLR0913 - a fixed form of the command line
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder: image.toml, Containerfile, context.")],
    *,
    dockerfile: Annotated[
        str | None, typer.Option(metavar="F", help="A plain Dockerfile in DIR instead of an image.toml.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="N", help="The image of a plain Dockerfile.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    promote: Annotated[str | None, typer.Option(metavar="CHANNEL", help="Then point this channel to it.")] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build although nothing changed: packages may have.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Follow it until it is done or has failed.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Build a folder's image, register it as a release, have it checked. Unchanged inputs are not built again."""
    silent = quiet or as_json
    asked: Publishing = {"name": name, "dockerfile": _inside(folder, dockerfile), "rebuild": rebuild}
    with connect.administrator() as admin:
        if dry_run:
            with Bar(folder, quiet=silent) as bar:
                plan = admin.publishes.plan(folder, progress=bar.update, **asked)
            _show_plan(plan, as_json=as_json, quiet=quiet)
            return
        with Bar(folder, quiet=silent) as bar:
            begun = admin.publishes.start(folder, promote=promote, progress=bar.update, **asked)
    _show(_follow(begun, quiet=silent) if wait else begun, as_json=as_json, quiet=quiet)


@app.command()
def ls(
    image: Annotated[str | None, typer.Argument(metavar="[IMAGE]", help="Only of this image.")] = None,
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List publishes, newest first."""
    with connect.administrator() as admin:
        found = admin.publishes.list(image)
    if as_json:
        render.document({"items": [it.raw for it in found]})
    elif quiet:
        for it in found:
            render.line(it.id)
    else:
        render.table(["ID", "IMAGE", "PHASE", "RELEASE", "CREATED", "WHY"], map(_row, found))


@app.command()
def log(publish: Id, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show what a publish's build says, and follow it to its end."""
    with connect.administrator() as admin:
        ended = _follow(admin.publishes.get(publish), quiet=quiet or as_json)
    _show(ended, as_json=as_json, quiet=quiet)


@app.command()
def cancel(publish: Id, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """End a publish. A release that it has registered already stays."""
    with connect.administrator() as admin:
        ended = admin.publishes.cancel(publish)
    _show(ended, as_json=as_json, quiet=quiet)


def _inside(folder: str, dockerfile: str | None) -> str | None:
    """The Dockerfile's path in the folder; it may be told from there, or from here."""
    if dockerfile is None or Path(folder, dockerfile).is_file():
        return dockerfile
    try:
        return Path(dockerfile).resolve().relative_to(Path(folder).resolve()).as_posix()
    except ValueError:
        raise typer.BadParameter(f"{dockerfile} is not in {folder}", param_hint="--dockerfile") from None


def _follow(begun: "Publish", *, quiet: bool) -> "Publish":
    """Lines of the log on standard error. Who goes away meanwhile stops nothing."""
    lines = _Lines(quiet=quiet)
    with connect.administrator() as admin:
        try:
            ended = admin.publishes.follow(begun.id, log=lines.take)
        except KeyboardInterrupt:
            render.note(f"It goes on. Follow it: sandbay publishes log {begun.id}; end it: sandbay publishes cancel …")
            raise
        finally:
            lines.end()
    return ended


class _Lines:
    """Text in pieces, shown line by line."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._rest = quiet, ""

    def take(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in itertools.filterfalse(lambda _: self._quiet, lines):
            render.note(f"  | {line}")

    def end(self) -> None:
        if self._rest and not self._quiet:
            render.note(f"  | {self._rest}")
        self._rest = ""


def _show(publish: "Publish", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(publish.raw)
    elif quiet:
        render.line(publish.release or publish.id)
    elif publish.release is None:
        render.line(publish.id, publish.image, publish.phase, f"follow it: sandbay publishes log {publish.id}")
    else:
        how = "built" if publish.built else "unchanged"
        render.line(publish.release, publish.phase, how, *(_based(base) for base in publish.bases))


def _show_plan(plan: "PublishPlan", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(plan.raw)
        return
    render.line(plan.image, plan.action, plan.release)
    if quiet:
        return
    render.line("why", plan.why)
    for base in plan.bases:
        render.line("base", _based(base))
    if plan.shared_layers:
        size = render.size(sum(layer["size"] for layer in plan.shared_layers))
        render.line("shares", f"{len(plan.shared_layers)} layers, {size}")
    for number, step in enumerate(plan.steps, 1):
        render.line(f"step {number}", step if len(step) <= _WIDE else f"{step[:_WIDE]}…")


_WIDE = 100


def _based(base: "Base") -> str:
    return f"on {base.release or base.digest or base.text}"


def _row(publish: "Publish") -> list[object]:
    why = None if publish.fault is None else f"{publish.fault.message} ({publish.fault.code})"
    created = publish.created_at.isoformat(timespec="seconds")
    return [publish.id, publish.image, publish.phase, publish.release, created, why]
