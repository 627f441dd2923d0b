"""`sandbay bindings`: which image a deployment, project, scope or agent uses."""

from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import completion, connect, listing, options, render, supposing

if TYPE_CHECKING:
    from sandbay.sdk.selection import Binding

app = typer.Typer(help="Which image a subject uses.", no_args_is_help=True, rich_markup_mode=None)

Image = Annotated[str, typer.Argument(metavar="REF", help="Any image reference.", autocompletion=completion.images)]


@app.command()
def ls(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List all bindings."""
    with connect.administrator() as admin:
        found = admin.bindings.list()
    head = ["SUBJECT", "MODE", "IMAGE", "NEWER", "AUTHOR", "SINCE", "REVISION", "REASON"]
    listing.show(found, head, _row, lambda binding: binding.subject, as_json=as_json, quiet=quiet)


@app.command("set")
def change(
    subject: options.Subject,
    image: Image,
    *,
    enforce: Annotated[bool, typer.Option("--enforce", help="Above every narrower word and every wish.")] = False,
    own: options.Own = False,
    reason: options.Why = None,
    expected_revision: options.ExpectedRevision = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Bind a subject to an image, in place of its binding. What would refuse its Sessions is refused now.

    With --own a subject is scope:KIND:REF or agent:NAME of the project of the key at hand, and a preference.
    """
    if own:
        if enforce:
            raise typer.BadParameter("only the administrator enforces", param_hint="--enforce")
        with connect.project() as client:
            made = client.bindings.put(subject, image, reason=reason, expected_revision=expected_revision)
    else:
        mode = "enforce" if enforce else "prefer"
        with connect.administrator() as admin:
            made = admin.bindings.put(subject, image, mode=mode, reason=reason, expected_revision=expected_revision)
    _say(made, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        supposing.show(made.changes)


@app.command()
def get(subject: options.Subject, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Show the binding of scope:KIND:REF or agent:NAME, with the key of the project at hand."""
    with connect.project() as client:
        _say(client.bindings.get(subject), as_json=as_json, quiet=quiet)


@app.command()
def rm(
    subject: options.Subject,
    *,
    own: options.Own = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Take a subject's binding away."""
    if own:
        with connect.project() as client:
            client.bindings.delete(subject)
    else:
        with connect.administrator() as admin:
            admin.bindings.delete(subject)
    render.gone(subject, as_json=as_json, quiet=quiet)


def _row(binding: "Binding") -> list[object]:
    said = [binding.subject, binding.mode, binding.runtime_image_id, binding.upgrade_available]
    return [*said, binding.author, listing.times(binding.at), binding.revision, binding.reason]


def _say(binding: "Binding", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        render.document(binding.raw)
    elif quiet:
        render.line(binding.subject)
    else:
        render.line(binding.subject, binding.mode, binding.runtime_image_id, f"revision {binding.revision}")
        if binding.upgrade_available:
            render.note(f"{binding.upgrade_available} is there by now; nothing moves what is pinned")
