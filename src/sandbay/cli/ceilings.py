"""`sandbay allow-lists`, `overrides`, `grants`: what may be chosen, whoever chooses."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.selection import AllowList

allow_lists = typer.Typer(help="Which images may be chosen.", no_args_is_help=True, rich_markup_mode=None)
overrides = typer.Typer(help="Whether Sessions may name an image.", no_args_is_help=True, rich_markup_mode=None)
grants = typer.Typer(help="Who may use restricted images.", no_args_is_help=True, rich_markup_mode=None)


class Word(StrEnum):
    """What can be said of requests."""

    ALLOW = "allow"
    DENY = "deny"


@allow_lists.command("ls")
def ls_allow_lists(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List all allow-lists."""
    with connect.administrator() as admin:
        found = admin.allow_lists.list()
    head = ["SUBJECT", "ALLOWED", "AUTHOR", "SINCE", "REVISION", "REASON"]
    listing.show(
        found,
        head,
        lambda it: [it.subject, _allowed(it), it.author, listing.times(it.at), it.revision, it.reason],
        lambda it: it.subject,
        as_json=as_json,
        quiet=quiet,
    )


@allow_lists.command("set")
def set_allow_list(  # noqa: PLR0913 - what can be said of a list
    subject: options.Subject,
    *,
    image: Annotated[list[str] | None, typer.Option(metavar="NAME", help="An image by name; may be repeated.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,K=V…]", help="Images that have all of these labels; may be repeated."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every image.")] = False,
    nothing: Annotated[bool, typer.Option("--none", help="No image.")] = False,
    reason: options.Why = None,
    expected_revision: options.ExpectedRevision = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say which images may be chosen below deployment, project:NAME or scope:KIND:REF. Sessions that are there stay."""
    if sum((bool(image or label), everything, nothing)) != 1:
        raise typer.BadParameter("give --image and --label, or --all, or --none")
    with connect.administrator() as admin:
        made = admin.allow_lists.put(
            subject,
            everything=everything,
            images=image or (),
            labels=[_selector(text) for text in label or ()],
            reason=reason,
            expected_revision=expected_revision,
        )
    if as_json:
        render.document(made.raw)
    else:
        render.line(made.subject, *([] if quiet else [_allowed(made), f"revision {made.revision}"]))


@allow_lists.command("rm")
def rm_allow_list(subject: options.Subject, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Take an allow-list away: everything is allowed there again."""
    with connect.administrator() as admin:
        admin.allow_lists.delete(subject)
    render.gone(subject, as_json=as_json, quiet=quiet)


@overrides.command("ls")
def ls_overrides(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List where something is said of it; everywhere else it is allowed."""
    with connect.administrator() as admin:
        found = admin.overrides.list()
    listing.show(
        found,
        ["SUBJECT", "OVERRIDE", "AUTHOR", "SINCE", "REVISION", "REASON"],
        lambda it: [it.subject, it.override, it.author, listing.times(it.at), it.revision, it.reason],
        lambda it: it.subject,
        as_json=as_json,
        quiet=quiet,
    )


@overrides.command("set")
def set_override(
    subject: options.Subject,
    word: Annotated[Word, typer.Argument(metavar="allow|deny", help="One deny on a path is enough.")],
    *,
    reason: options.Why = None,
    expected_revision: options.ExpectedRevision = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say whether Session requests may name an image below deployment, project:NAME or scope:KIND:REF."""
    with connect.administrator() as admin:
        made = admin.overrides.put(subject, word.value, reason=reason, expected_revision=expected_revision)
    if as_json:
        render.document(made.raw)
    else:
        render.line(made.subject, *([] if quiet else [made.override, f"revision {made.revision}"]))


@overrides.command("rm")
def rm_override(subject: options.Subject, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Take the word away: it is allowed there again."""
    with connect.administrator() as admin:
        admin.overrides.delete(subject)
    render.gone(subject, as_json=as_json, quiet=quiet)


@grants.command("ls")
def ls_grants(*, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """List who may use which restricted image."""
    with connect.administrator() as admin:
        found = admin.grants.list()
    listing.show(
        found,
        ["SUBJECT", "IMAGE", "AUTHOR", "SINCE", "REASON"],
        lambda it: [it.subject, it.image, it.author, listing.times(it.at), it.reason],
        lambda it: f"{it.subject} {it.image}",
        as_json=as_json,
        quiet=quiet,
    )


@grants.command("add")
def add_grant(
    subject: options.Subject,
    image: options.ImageName,
    *,
    reason: options.Why = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Let project:NAME, or Sessions in scope:KIND:REF, use a restricted image (`sandbay images tier`)."""
    with connect.administrator() as admin:
        made = admin.grants.put(subject, image, reason=reason)
    if as_json:
        render.document(made.raw)
    else:
        render.line(made.subject, *([] if quiet else ["may use", made.image]))


@grants.command("rm")
def rm_grant(
    subject: options.Subject, image: options.ImageName, *, as_json: options.Json = False, quiet: options.Quiet = False
) -> None:
    """Take a grant away. Sessions that are there stay."""
    with connect.administrator() as admin:
        admin.grants.delete(subject, image)
    render.gone(f"{subject} {image}", as_json=as_json, quiet=quiet)


def _allowed(it: "AllowList") -> str:
    if it.everything:
        return "everything"
    selectors = (",".join(f"{key}={value}" for key, value in labels.items()) for labels in it.labels)
    return " ".join((*it.images, *selectors)) or "nothing"


def _selector(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(key and equals for key, equals, _ in pairs):
        raise typer.BadParameter(f"{text!r} is not K=V[,K=V…]", param_hint="--label")
    return {key: value for key, _, value in pairs}
