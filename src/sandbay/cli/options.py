"""Options that several commands share, each defined once."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from sandbay.cli import completion

Ref = Annotated[
    str,
    typer.Argument(
        metavar="REF", help="NAME, NAME:CHANNEL, NAME:NUMBER or NAME@DIGEST.", autocompletion=completion.images
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, errors as JSON, too.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no more than names and ids.")]
Env = Annotated[
    list[str] | None, typer.Option("--env", "-e", metavar="K=V", help="Set a variable; K alone takes it from here.")
]
Secrets = Annotated[
    list[str] | None,
    typer.Option("--secret", metavar="K=NAME", help="Set a variable to a secret of the project; may be repeated."),
]
User = Annotated[str | None, typer.Option(help="Run as this user[:group] of the image.")]
Workdir = Annotated[str | None, typer.Option(help="Run in this folder.")]
Timeout = Annotated[float | None, typer.Option(metavar="S", min=0.001, help="Stop the command after S seconds.")]
Stdin = Annotated[bool, typer.Option("--interactive", "-i", help="Pass standard input on.")]
Tty = Annotated[bool, typer.Option("--tty", "-t", help="Give it a terminal; with -i every key goes inside.")]
Platform = Annotated[str | None, typer.Option(help="As linux/amd64; otherwise the deployment's.")]
Network = Annotated[str | None, typer.Option(metavar="MODE", help="What the sandbox reaches: disabled, enabled, …")]
Template = Annotated[str | None, typer.Option(metavar="NAME", help="Prepare it with this Template of the project.")]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="The agent that it runs for.")]
Scope = Annotated[str | None, typer.Option(metavar="KIND:REF", help="The scope that it acts in, as team:growth.")]
Wait = Annotated[int, typer.Option(metavar="S", min=0, max=1800, help="Wait so long for image and place; 0 fails.")]
IdleTimeout = Annotated[int | None, typer.Option(metavar="S", min=10, help="End it after S seconds without use.")]
MaxLife = Annotated[int | None, typer.Option(metavar="S", min=10, help="End it S seconds from now, used or not.")]
Argv = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARGV...]", help="Passed on as it is.", show_default=False)
]

Tools = Annotated[
    list[str] | None,
    typer.Option("--tool", metavar="NAME=COMMAND", help="A tool and what prints its version; may be repeated."),
]

ImageName = Annotated[str, typer.Argument(metavar="IMAGE", help="Its name.", autocompletion=completion.images)]
Subject = Annotated[
    str,
    typer.Argument(metavar="SUBJECT", help="deployment, project:NAME, scope:KIND:REF or agent:PROJECT:NAME."),
]
Own = Annotated[bool, typer.Option("--own", help="With the key of the project at hand, for what is its own.")]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for whoever reads it later.")]
ExpectedRevision = Annotated[int | None, typer.Option(metavar="N", min=0, help="Refuse if it has another one by now.")]

WAIT = 1800


def environment(pairs: Sequence[str] | None) -> dict[str, str]:
    """`K=V` and `K` to a mapping; a variable that is not set here is left out. Wrong usage: no name."""
    said: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not name:
            raise typer.BadParameter(f"{pair!r} has no name before the =", param_hint="--env")
        if equals:
            said[name] = value
        elif name in os.environ:
            said[name] = os.environ[name]
    return said


def variables(pairs: Sequence[str] | None, secrets: Sequence[str] | None) -> dict[str, str | Mapping[str, str]]:
    """Of `--env` and `--secret`. Wrong usage: no name, or one variable of both."""
    said: dict[str, str | Mapping[str, str]] = {**environment(pairs)}
    for pair in secrets or ():
        variable, _, name = pair.partition("=")
        if not variable or not name:
            raise typer.BadParameter(f"{pair!r} is not K=NAME, such as GH_TOKEN=gh", param_hint="--secret")
        if variable in said:
            raise typer.BadParameter(f"{variable} is given twice", param_hint="--secret")
        said[variable] = {"secret": name}
    return said


def tools(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """`NAME=COMMAND` to a mapping, None for nothing said. Wrong usage: no name, no command, the same name twice."""
    said: dict[str, str] = {}
    for pair in pairs or ():
        name, _, command = pair.partition("=")
        if not name or not command.strip():
            raise typer.BadParameter(
                f"{pair!r} is not NAME=COMMAND, such as node='node --version'", param_hint="--tool"
            )
        if name in said:
            raise typer.BadParameter(f"{name} is given twice", param_hint="--tool")
        said[name] = command
    return said or None
