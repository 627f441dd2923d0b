"""`sandbay run`: one command in a sandbox of its own, gone afterwards."""

from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import connect, executing, options
from sandbay.cli.progress import Bar
from sandbay.cli.signals import stoppable

if TYPE_CHECKING:
    from sandbay.sdk import Client
    from sandbay.sdk._sync.admission import Admission
    from sandbay.sdk.client import Wish
    from sandbay.sdk.commands import Options


def run(  # noqa: PLR0913 - a fixed form of the command line
    image: options.Ref,
    argv: options.Argv = None,
    *,
    entrypoint: Annotated[str | None, typer.Option(help="Instead of the image's; an empty one clears it.")] = None,
    env: options.Env = None,
    secret: options.Secrets = None,
    user: options.User = None,
    workdir: options.Workdir = None,
    platform: options.Platform = None,
    template: options.Template = None,
    agent: options.Agent = None,
    scope: options.Scope = None,
    timeout: options.Timeout = None,
    wait: options.Wait = options.WAIT,
    network: options.Network = None,
    interactive: options.Stdin = False,
    tty: options.Tty = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a command in a new sandbox and remove the sandbox.

    Without ARGV the image's own command runs; ARGV replaces it, after the image's entrypoint, without a shell. The exit
    code is the command's; 125 when it could not be run or took too long.
    """
    variables, secrets = options.environment(env), options.variables(None, secret) or None
    with connect.project() as client:
        from sandbay.sdk.commands import Options

        entry = None if entrypoint is None else list(filter(None, [entrypoint]))
        stdin = executing.standard_input(wanted=interactive and as_json)
        size = executing.size_of_terminal(tty=tty, as_json=as_json)
        said = Options(variables, user, workdir, stdin, timeout, entrypoint=entry, image_command=True, terminal=size)
        where: Wish = {"template": template, "agent": agent, "scope": scope, "platform": platform}
        wish: Wish = {**where, "network": network, "env": secrets}
        admission, bar = client.sessions.request(image, wait=wait, **wish), Bar(image, quiet=quiet or as_json)
        code = _in_its_own_sandbox(client, admission, bar, argv or None, said, as_json=as_json, interactive=interactive)
    raise typer.Exit(code)


def _in_its_own_sandbox(
    client: "Client",
    admission: "Admission",
    bar: Bar,
    command: executing.Command,
    said: "Options",
    *,
    as_json: bool,
    interactive: bool,
) -> int:
    """Admit, run, remove, whatever happens in between."""
    from sandbay.sdk._sync.commands import Commands

    with stoppable():
        try:
            with bar:
                session = admission.wait(bar.update)
            commands = Commands(client.transport, session.id)
            if as_json:
                about = {"session": session.id, "image": dict(session.raw["image"])}
                return executing.collect(commands, command, said, about)
            return executing.follow(commands, command, said, interactive=interactive)
        finally:
            admission.discard()
