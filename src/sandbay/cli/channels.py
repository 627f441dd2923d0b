"""`sandbay images promote|rollback|history`: channels."""

from typing import TYPE_CHECKING, Annotated

import typer

from sandbay.cli import completion, connect, listing, options, render

if TYPE_CHECKING:
    from sandbay.sdk.channels import ChannelMove
    from sandbay.sdk.resources import Channel

_STABLE = "stable"

Where = Annotated[
    str, typer.Argument(metavar="NAME[:CHANNEL]", help="A channel, stable without.", autocompletion=completion.images)
]
Why = Annotated[str | None, typer.Option(metavar="TEXT", help="Kept in the channel's history.")]


def promote(
    reference: Annotated[str, typer.Argument(metavar="REF", help="A release, as NAME:7.")],
    *,
    to: Annotated[str, typer.Option(metavar="CHANNEL", help="The channel to move.")] = _STABLE,
    why: Why = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Point a channel at a release. Sessions that live keep theirs."""
    with connect.administrator() as admin:
        channel = admin.images.promote(reference, to=to, why=why)
    _show(reference.partition(":")[0].partition("@")[0], to, channel, as_json=as_json, quiet=quiet)


def rollback(channel: Where, *, why: Why = None, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Point a channel at the release before. Sessions that live keep theirs."""
    name, which = _where(channel)
    with connect.administrator() as admin:
        moved = admin.images.rollback(name, channel=which, why=why)
    _show(name, which, moved, as_json=as_json, quiet=quiet)


def history(
    channel: Where,
    *,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The newest N moves.")] = 100,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Show who pointed a channel where, newest first."""
    name, which = _where(channel)
    with connect.administrator() as admin:
        found = admin.images.history(name, channel=which, limit=limit)
    head = ["REVISION", "WHEN", "WHO", "FROM", "TO", "WHY"]
    listing.show(found, head, _row, lambda move: move.release, as_json=as_json, quiet=quiet)


def _row(move: "ChannelMove") -> list[object]:
    return [move.revision, listing.times(move.at), move.principal, move.before, move.release, move.why or None]


def _where(text: str) -> tuple[str, str]:
    """Wrong usage: a release instead of a channel."""
    name, _, channel = text.partition(":")
    if not name or channel.isdigit() or "@" in text:
        raise typer.BadParameter(f"{text!r} is no channel, such as web or web:canary")
    return name, channel or _STABLE


def _show(name: str, which: str, channel: "Channel", *, as_json: bool, quiet: bool) -> None:
    if as_json:
        at = {"release": channel.release, "revision": channel.revision, "previous": channel.previous}
        render.document({"image": name, "channel": which, **at})
    elif not quiet:
        render.line(f"{name}:{which}", "is now", f"{name}:{channel.release}")
