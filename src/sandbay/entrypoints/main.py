"""The console script: the command line's app, and the commands that need the server on this host.

What they do is imported when they are called. Where only SDK and command line are installed they say
what to install.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from sandbay.cli.failures import CommandError
from sandbay.cli.main import app, run
from sandbay.cli.options import Json, Quiet
from sandbay.cli.progress import Bar

Args = ParamSpec("Args")

_OF_THE_SERVER = "fastapi"  # comes with sandbay[server] and not without
_MISSING = "only SDK and command line are installed here, and this command needs the server"
_LACKS = "The lines marked FAIL say what is missing and what to do; those marked note are for some features only."
_TOLD = ("name", "ok", "says", "do", "fatal")
_INSTALL = "Install it: pip install 'sandbay[server]'"

Port = Annotated[int | None, typer.Option("--port", help="Listen on this port of 127.0.0.1 (default 8730).")]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="postgresql://USER:PASSWORD@HOST/NAME or sqlite:////PATH; better in SANDBAY_DATABASE, which no list of"
        " processes shows.",
    ),
]

Blobs = Annotated[
    str | None,
    typer.Option(
        "--blobs",
        metavar="oci://HOST/PREFIX",
        help="Keep image bytes in this registry instead of SANDBAY_HOME; also SANDBAY_BLOBS.",
    ),
]


@app.command()
def up(
    *,
    port: Port = None,
    database: Database = None,
    blobs: Blobs = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready; `sandbay down` stops it.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Serve an installation on this host: Core and one node."""
    _server(_up, port, database, blobs, detach=detach, as_json=as_json, quiet=quiet)


@app.command()
def core(
    *, database: Database = None, blobs: Blobs = None, port: Port = None, as_json: Json = False, quiet: Quiet = False
) -> None:
    """Serve the interface without a node, beside others on one database.

    Nodes cannot connect from elsewhere yet: until one does, what is registered stays pending.
    """
    del as_json, quiet  # they say how a refusal is told, which is not decided here
    _server(_core, port, database, blobs)


@app.command()
def down(
    *,
    keep_sessions: Annotated[
        bool, typer.Option("--keep-sessions", help="Leave sandboxes running; the next `up` adopts them.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Stop what `up` started, and end its Sessions."""
    _server(_down, keep_sessions=keep_sessions, as_json=as_json, quiet=quiet)


@app.command()
def doctor(*, as_json: Json = False, quiet: Quiet = False) -> None:
    """Say what this host can run, what it lacks, and what to install. With -q only what it lacks."""
    _server(_doctor, as_json=as_json, quiet=quiet)


File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]


@app.command()
def backup(file: File, *, database: Database = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Write the whole installation of this host to a new FILE: database, image bytes and keys. It may be serving.

    Who has the file has all secrets of the installation.
    """
    _server(_keep, "backup", file, database, as_json=as_json, quiet=quiet)


@app.command()
def restore(
    file: File, *, database: Database = None, blobs: Blobs = None, as_json: Json = False, quiet: Quiet = False
) -> None:
    """Make the installation of a backup on this host, where there is none. Then: sandbay up."""
    _server(_keep, "restore", file, database, blobs, as_json=as_json, quiet=quiet)


def _server(command: Callable[Args, None], *arguments: Args.args, **options: Args.kwargs) -> None:
    """Run a command of the server; its refusals end as every refusal does."""
    if importlib.util.find_spec(_OF_THE_SERVER) is None:
        raise CommandError("host_unfit", _MISSING, next_step=_INSTALL)
    from sandbay.domain.errors import RefusedError

    try:
        command(*arguments, **options)
    except RefusedError as error:
        refusal = error.refusal
        raise CommandError(refusal.reason.value, refusal.message, details=refusal.details) from error


def _up(port: int | None, database: str | None, blobs: str | None, *, detach: bool, as_json: bool, quiet: bool) -> None:
    from sandbay.entrypoints.service import running, serve, start_detached
    from sandbay.entrypoints.settings import settings

    where = settings(port, database, blobs)
    if not detach:
        serve(where)
        return
    known = running(where)
    with Bar("sandbay", quiet=quiet or as_json, phase="starting"):
        pid = start_detached(where)
    if as_json:
        typer.echo(json.dumps({"url": where.url, "pid": pid, "home": str(where.home), "started": pid != known}))
        return
    if quiet:
        typer.echo(where.url)
        return
    typer.echo(f"{'Already serving' if pid == known else 'Serving'} {where.home} at {where.url} (process {pid}).")


def _core(port: int | None, database: str | None, blobs: str | None) -> None:
    from sandbay.entrypoints.service import serve_core
    from sandbay.entrypoints.settings import settings

    serve_core(settings(port, database, blobs))


def _down(*, keep_sessions: bool, as_json: bool, quiet: bool) -> None:
    from sandbay.entrypoints.service import stop
    from sandbay.entrypoints.settings import settings

    where = settings()
    with Bar("sandbay", quiet=quiet or as_json, phase="stopping"):
        pid = stop(where, keep_sessions=keep_sessions)
    if as_json:
        typer.echo(json.dumps({"stopped": pid}))
        return
    if not quiet:
        typer.echo(f"Stopped process {pid}." if pid else f"Nothing serves {where.home}.")


def _keep(what: str, file: Path, database: str | None, blobs: str | None = None, *, as_json: bool, quiet: bool) -> None:
    from sandbay.entrypoints import backup as keeping
    from sandbay.entrypoints.settings import settings
    from sandbay.sdk.resources import Progress

    act = keeping.backup if what == "backup" else keeping.restore
    with Bar(str(file), quiet=quiet or as_json, phase=what) as bar:
        kept = act(settings(None, database, blobs), file, lambda done, of: bar.update(Progress(what, done, of)))
    if as_json:
        typer.echo(json.dumps({"file": str(file.absolute()), **asdict(kept)}))
    elif quiet:
        typer.echo(file)
    else:
        typer.echo(f"{file}: installation {kept.installation}, {kept.blobs} blobs, {kept.bytes / 1024**2:.1f} MiB")


def _doctor(*, as_json: bool, quiet: bool) -> None:
    from sandbay.entrypoints.examine import examine
    from sandbay.entrypoints.settings import settings

    with Bar("doctor", quiet=quiet or as_json, phase="looking"):
        findings = examine(settings())
    if as_json:
        typer.echo(json.dumps([{name: getattr(f, name) for name in _TOLD} for f in findings], indent=2))
    else:
        width = max(len(f.name) for f in findings)
        for f in (f for f in findings if not (quiet and f.ok)):
            typer.echo(f"{'ok  ' if f.ok else 'FAIL' if f.fatal else 'note'}  {f.name:<{width}}  {f.says}")
            if f.do:
                typer.echo(f"{'':<{width + 8}}→ {f.do}")
    if any(f.fatal and not f.ok for f in findings):
        raise CommandError("host_unfit", "this host cannot run sandboxes yet", next_step=_LACKS)


def main() -> None:
    """The console script `sandbay`."""
    sys.exit(run())


if __name__ == "__main__":
    main()
