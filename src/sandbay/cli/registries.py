"""`sandbay registries`: what the installation says to registries that want credentials."""

import sys
from typing import Annotated

import typer

from sandbay.cli import connect, listing, options, render

app = typer.Typer(help="Credentials for registries.", no_args_is_help=True, rich_markup_mode=None)

Host = Annotated[str, typer.Argument(metavar="HOST[:PORT]", help="The registry, as it stands in references.")]


@app.command()
def login(
    host: Host,
    *,
    username: Annotated[str | None, typer.Option("--username", "-u", help="The user; asked for when missing.")] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password or token from standard input.")
    ] = False,
    from_docker: Annotated[
        bool, typer.Option("--from-docker", help="Take what docker's own login left on this computer.")
    ] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Give the installation credentials for a registry. It keeps them sealed and shows them to nobody."""
    user, password = _docker(host) if from_docker else _asked(username, password_stdin=password_stdin)
    with connect.administrator() as admin:
        kept = admin.registries.put(host, user, password)
    if as_json:
        render.document(kept.raw)
    elif not quiet:
        render.line(f"{kept.registry}: credentials are kept")


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List the registries that there are credentials for."""
    with connect.administrator() as admin:
        found = admin.registries.list()
    listing.show(
        found,
        ["REGISTRY", "SINCE"],
        lambda secret: [secret.registry, secret.updated_at],
        lambda secret: secret.registry,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def logout(host: Host, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Have the installation forget its credentials for a registry."""
    with connect.administrator() as admin:
        admin.registries.delete(host)
    if as_json:
        render.document({"deleted": host})
    elif not quiet:
        render.line(f"{host}: credentials are forgotten")


def _asked(username: str | None, *, password_stdin: bool) -> tuple[str, str]:
    if password_stdin and username is None:
        raise typer.BadParameter("--password-stdin needs --username")
    user = username or typer.prompt("Username", err=True)
    if password_stdin:
        return user, sys.stdin.read().rstrip("\r\n")
    return user, typer.prompt("Password", hide_input=True, err=True)


def _docker(host: str) -> tuple[str, str]:
    from sandbay.cli.docker_login import find

    return find(host)
