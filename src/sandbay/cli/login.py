"""`sandbay login`: remember an installation and a key for it, in a file of the user's own."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import connect, options, render
from sandbay.cli.failures import CommandError

if TYPE_CHECKING:
    from sandbay.sdk.context import Context

_ADMINISTRATOR = "sba_"


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The installation's address, as https://sandbay.example.")],
    *,
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="Read the key from standard input.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Keep an address and a key, so that commands need no environment. A second key of the other kind joins the first.

    A key that starts with sba_ is an administrator's, one that starts with sbp_ a project's. It is tried first.
    """
    from sandbay.sdk import context

    path = context.own_file(os.environ)
    if path is None:
        raise CommandError("invalid_context", "there is no HOME to keep the key in", next_step="Set HOME.")
    key = sys.stdin.read().strip() if key_stdin else typer.prompt("Key", hide_input=True, err=True).strip()
    said = {"admin_key" if key.startswith(_ADMINISTRATOR) else "api_key": key}
    _try(context.Context(url, **said))
    _write(path, {**_others(path, url), "url": url.rstrip("/"), **said})
    if as_json:
        render.document({"url": url, "file": str(path), "keys": sorted(said)})
    elif not quiet:
        render.line(f"Logged in to {url}; the key is in {path}.")
    for variable in (context.URL, context.HOME):
        if os.environ.get(variable):
            render.note(f"{variable} is set and goes first.")


def _try(known: "Context") -> None:
    """Raises what the installation says to the key."""
    if known.admin_key is not None:
        with connect.administrator(known) as admin:
            admin.deployment.get()
    else:
        with connect.project(known) as client:
            client.project()


def _others(path: Path, url: str) -> dict[str, str]:
    """What is kept of the same installation."""
    try:
        data = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    same = isinstance(data, dict) and str(data.get("url", "")).rstrip("/") == url.rstrip("/")
    return {name: value for name, value in data.items() if isinstance(value, str)} if same else {}


def _write(path: Path, content: dict[str, str]) -> None:
    """In one step, readable by nobody else at any moment."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(json.dumps(content, indent=1) + "\n")
    part.replace(path)
