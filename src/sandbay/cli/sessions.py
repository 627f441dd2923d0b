"""`sandbay sessions`: sandboxes that live until they are removed."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sandbay.cli import completion, connect, executing, failures, listing, options, render
from sandbay.cli.progress import Bar
from sandbay.cli.signals import stoppable

if TYPE_CHECKING:
    from sandbay.sdk import Client
    from sandbay.sdk.client import Wish
    from sandbay.sdk.events import Event
    from sandbay.sdk.resources import Session

app = typer.Typer(help="Sandboxes that live until they are removed.", no_args_is_help=True, rich_markup_mode=None)

Id = Annotated[str, typer.Argument(metavar="ID", help="ses_…", autocompletion=completion.sessions)]
_GONE_WITHIN = 30
_SHELL = "if command -v bash >/dev/null; then exec bash; else exec sh; fi"
_REMOTE = re.compile(r"(ses_[0-9a-z]+):(.*)", re.DOTALL)


@app.command()
def create(  # noqa: PLR0913 - a fixed form of the command line
    *,
    image: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Otherwise the project's or the default.", autocompletion=completion.images),
    ] = None,
    platform: options.Platform = None,
    template: options.Template = None,
    agent: options.Agent = None,
    scope: options.Scope = None,
    project: Annotated[str | None, typer.Option(help="Only if the key at hand is this project's.")] = None,
    env: options.Env = None,
    secret: options.Secrets = None,
    network: options.Network = None,
    idle_timeout: options.IdleTimeout = None,
    max_life: options.MaxLife = None,
    wait: options.Wait = options.WAIT,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Start a sandbox and say its id. It lives until `sandbay sessions rm`, or as long as it may."""
    variables = options.variables(env, secret)
    with connect.project() as client:
        if project is not None:
            _check_project(client, project)
        where: Wish = {"template": template, "agent": agent, "scope": scope, "platform": platform}
        life: Wish = {"idle_timeout": idle_timeout, "max_life": max_life}
        wish: Wish = {**where, **life, "env": variables, "network": network}
        admission = client.sessions.request(image, wait=wait, **wish)
        with stoppable(), Bar(image or "image", quiet=quiet or as_json) as bar, admission.kept_if_whole():
            session = admission.wait(bar.update)
    if as_json:
        render.document(session.raw)
    elif quiet:
        render.line(session.id)
    else:
        render.line(
            session.id, session.status, session.image.reference, session.image.digest, f"decided by {_decided(session)}"
        )


@app.command()
def ls(
    *,
    project: Annotated[str | None, typer.Option(help="Of this project, with an administrator key.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the Sessions of the project of the key at hand, newest first."""
    if project is None:
        with connect.project() as client:
            found = client.sessions.list()
    else:
        with connect.administrator() as admin:
            found = admin.projects.sessions(project)
    head = ["ID", "STATUS", "IMAGE", "RELEASE", "CREATED"]
    listing.show(found, head, _row, lambda session: session.id, as_json=as_json, quiet=quiet)


@app.command()
def get(
    session_id: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Follow it to its end: each state, and why.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show one Session; with an administrator key also its node, runtime and first process."""
    if watch:
        _watch(session_id, as_json=as_json)
        return
    session = _look_up(session_id)
    if as_json:
        render.document(session.raw)
    elif quiet:
        render.line(session.status)
    else:
        _show(session)


@app.command("exec")
def execute(  # noqa: PLR0913 - as `create`
    session_id: Id,
    argv: options.Argv = None,
    *,
    shell: Annotated[str | None, typer.Option(metavar="LINE", help="A line for the image's /bin/sh.")] = None,
    env: options.Env = None,
    user: options.User = None,
    workdir: options.Workdir = None,
    timeout: options.Timeout = None,
    interactive: options.Stdin = False,
    tty: options.Tty = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,  # noqa: ARG001 - it is quiet
) -> None:
    """Run a command in a Session. The exit code is the command's."""
    if (shell is None) == (not argv):
        raise typer.BadParameter("give either --shell LINE or a command after --", param_hint="ARGV")
    variables = options.environment(env)
    with connect.project() as client:
        from sandbay.sdk._sync.commands import Commands
        from sandbay.sdk.commands import Options

        stdin = executing.standard_input(wanted=interactive and as_json)
        size = executing.size_of_terminal(tty=tty, as_json=as_json)
        said = Options(variables, user, workdir, stdin, timeout, terminal=size)
        commands = Commands(client.transport, session_id)
        command = argv if shell is None else shell
        with stoppable():
            if as_json:
                code = executing.collect(commands, command, said, {"session": session_id})
            else:
                code = executing.follow(commands, command, said, interactive=interactive)
    raise typer.Exit(code)


@app.command()
def shell(
    session_id: Id,
    *,
    env: options.Env = None,
    user: options.User = None,
    workdir: options.Workdir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,  # noqa: ARG001 - it is quiet
) -> None:
    """Open a shell in a Session: bash where the image has it, else sh. With --json only a refusal is JSON."""
    del as_json  # a shell's output is no document
    execute(session_id, shell=_SHELL, env=env, user=user, workdir=workdir, interactive=True, tty=True)


@app.command()
def cp(
    source: Annotated[str, typer.Argument(metavar="SRC", help="PATH here, or ID:PATH.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="ID:PATH, or PATH here.")],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Copy a file or folder into a Session or out of it. Links are not followed."""
    there, here = _REMOTE.fullmatch(source), _REMOTE.fullmatch(target)
    remote = there or here
    if remote is None or (there and here):
        raise typer.BadParameter("one of SRC and DST is ID:PATH, the other a path here", param_hint="SRC DST")
    with connect.project() as client, Bar("copy", quiet=quiet or as_json) as bar:
        from sandbay.sdk._sync.files import Files

        files, path = Files(client.transport, remote[1]), remote[2] or "."
        if there is not None:
            copied = files.copy_out(path, target, progress=bar.update)
        else:
            copied = files.copy_in(source, path, progress=bar.update)
    if as_json:
        skipped = [{"path": path, "why": why} for path, why in copied.skipped]
        render.document({"files": copied.files, "bytes": copied.bytes, "skipped": skipped})
        return
    for path, why in copied.skipped:
        render.note(f"left out: {path}: {why}")
    if not quiet:
        render.line(f"{copied.files} files, {render.size(copied.bytes)}")


@app.command()
def suspend(
    session_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="ses_…", autocompletion=completion.sessions)
    ],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Keep the files of Sessions and end their processes, until they are resumed."""
    with connect.project() as client, Bar("sessions", quiet=quiet or as_json, phase="suspending"):
        _for_each(session_ids, client.sessions.suspend)
    _acted_on("suspended", session_ids, as_json=as_json, quiet=quiet)


@app.command()
def resume(
    session_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="ses_…", autocompletion=completion.sessions)
    ],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Start suspended Sessions from what was kept, each on the release that it was admitted on."""
    with connect.project() as client, Bar("sessions", quiet=quiet or as_json, phase="resuming"):
        _for_each(session_ids, client.sessions.resume)
    _acted_on("resumed", session_ids, as_json=as_json, quiet=quiet)


@app.command()
def rm(
    session_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="ses_…", autocompletion=completion.sessions)
    ],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """End Sessions and wait until they are gone. One that has ended already is fine."""
    with connect.project() as client, Bar("sessions", quiet=quiet or as_json, phase="ending"):
        _for_each(session_ids, lambda session: client.sessions.delete(session, wait=_GONE_WITHIN))
    _acted_on("removed", session_ids, as_json=as_json, quiet=quiet)


def _acted_on(what: str, session_ids: list[str], *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document({what: session_ids})
    elif not quiet:
        for session_id in session_ids:
            render.line(session_id)


def _for_each(session_ids: list[str], act: Callable[[str], object]) -> None:
    """Act on all of them, then raise the first error, with the ids of all that failed in its details."""
    from sandbay.sdk.errors import SandbayError

    errors: dict[str, SandbayError] = {}
    for session_id in session_ids:
        try:
            act(session_id)
        except SandbayError as error:
            errors[session_id] = error
    for first in errors.values():
        first.details = {**first.details, "failed": list(errors)}
        raise first


def _check_project(client: "Client", name: str) -> None:
    ours = client.project()
    if name not in {ours.name, ours.id}:
        raise failures.CommandError(
            "forbidden",
            f"the key at hand belongs to the project {ours.name}, not to {name}",
            next_step=f"Set SANDBAY_API_KEY to a key of {name}.",
        )


def _look_up(session_id: str) -> "Session":
    if connect.known().admin_key is not None:
        with connect.administrator() as admin:
            return admin.session(session_id)
    with connect.project() as client:
        return client.sessions.get(session_id)


def _watch(session_id: str, *, as_json: bool) -> None:
    """A line for each event; as JSON, a document in each line."""
    with connect.project() as client, stoppable():
        for event in client.sessions.events(session_id):
            if as_json:
                print(json.dumps({"event": event.kind, **event.data}), flush=True)
            else:
                render.line(*_told(event))


def _told(event: "Event") -> list[object]:
    said = event.data
    if event.kind == "progress":
        return [f"{'':<19}", said["phase"], render.size(said["bytes_done"]), "of", _size_of(said["bytes_total"])]
    at = str(said["at"])[:19].replace("T", " ")
    return [at, said["status"], said["waiting_for"], _why(said)]


def _why(said: Mapping[str, Any]) -> str | None:
    """What went wrong, why it ends, or that it is going to."""
    if said["reason"] is not None:
        return f"{said['reason']['message']} ({said['reason']['code']})"
    foretold = said.get("foretold")
    if foretold is not None:
        return f"ends at {str(foretold['at'])[:19].replace('T', ' ')} ({foretold['because']})"
    ended: str | None = said.get("ended_because")
    return ended


def _size_of(size: int | None) -> str:
    return "?" if size is None else render.size(size)


def _row(session: "Session") -> list[object]:
    release = f"{session.image.name}:{session.image.release}"
    return [session.id, session.status, session.image.reference, release, listing.times(session.created_at)]


def _decided(session: "Session") -> str:
    by = session.image.decided_by
    return f"{by.level} {by.subject}" if by.subject else by.level


def _show(session: "Session") -> None:
    image = session.image
    facts = {
        "id": session.id,
        "status": session.status,
        "why": None if session.reason is None else f"{session.reason.message} ({session.reason.code})",
        "image": f"{image.name}:{image.release}",
        "reference": image.reference,
        "digest": image.digest,
        "platform": image.platform,
        "decided by": _decided(session),
        "network": session.network,
        "waiting for": session.waiting_for,
        "created": session.created_at,
        "ends": None if session.foretold is None else f"{session.foretold.at} ({session.foretold.because})",
        "ended": session.ended_at,
        "because": session.ended_because,
        "node": session.node,
        "runtime": session.runtime,
        "host pid": session.host_pid,
    }
    for label, value in facts.items():
        if value is not None:
            render.line(f"{label:<12}", value)
    for step in session.trail:
        render.line(f"{'trail':<12}", step.level, step.outcome, step.subject, step.said, step.reason)
