"""The app, and the one place where errors become exit codes.

    the remote command's own code · 125 refused or failed by name · 126, 127 as from the remote command
    2 wrong usage · 130 and 143 interrupted

`app` is public: `entrypoints.main` adds the commands that need more than the SDK.
"""

import itertools
import sys
from collections.abc import Sequence

import typer

from sandbay.cli import (
    audit,
    bindings,
    ceilings,
    deployment,
    failures,
    images,
    keys,
    login,
    nodes,
    pools,
    projects,
    publishing,
    registries,
    scopes,
    secrets,
    sessions,
    templates,
)
from sandbay.cli import run as run_command

app = typer.Typer(
    name="sandbay",
    help="Sandboxes from many named, pinned images in one installation.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def sandbay() -> None:
    """Sandboxes from many named, pinned images in one installation."""


app.command()(run_command.run)
app.add_typer(sessions.app, name="sessions")
app.add_typer(images.app, name="images")
images.app.command()(publishing.publish)
app.add_typer(publishing.app, name="publishes")
app.add_typer(registries.app, name="registries")
app.add_typer(secrets.app, name="secrets")
app.add_typer(templates.app, name="templates")
app.add_typer(deployment.app, name="deployment")
app.add_typer(pools.app, name="pools")
app.add_typer(nodes.app, name="nodes")
app.add_typer(projects.app, name="projects")
app.add_typer(keys.app, name="keys")
app.add_typer(scopes.app, name="scopes")
app.add_typer(bindings.app, name="bindings")
app.add_typer(ceilings.allow_lists, name="allow-lists")
app.add_typer(ceilings.overrides, name="overrides")
app.add_typer(ceilings.grants, name="grants")
app.add_typer(audit.app, name="audit")
app.command()(login.login)


def run(commands: typer.Typer = app, arguments: Sequence[str] | None = None) -> int:
    """Run a command line, `sys.argv` by default, and return the exit code. Expected errors leave no traceback."""
    said = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in itertools.takewhile(lambda argument: argument != "--", said)
    try:
        commands(said, prog_name="sandbay")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else failures.REFUSED
    except Exception as error:
        named = _named(error)
        if named is None:
            raise
        failures.report(named, as_json=as_json)
        return failures.REFUSED
    return 0


def _named(error: Exception) -> failures.Named | None:
    """The error as one that can be reported, or None when it is a fault of ours."""
    if isinstance(error, failures.CommandError):
        return error
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return failures.CommandError("local_file", f"{error.strerror or error}{where}", next_step="Check the path.")
    from sandbay.sdk.errors import SandbayError

    return error if isinstance(error, SandbayError) else None
