"""`sandbay images promote|promotions|abort|rollback|history`: channels."""

from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from sandbay.cli import completion, connect, listing, options, render
from sandbay.cli.progress import Bar

if TYPE_CHECKING:
    from sandbay.sdk.channels import ChannelMove, Promotion
    from sandbay.sdk.resources import Channel

_STABLE = "stable"

Where = Annotated[
    str, typer.Argument(metavar="NAME[:CHANNEL]", help="A channel, stable without.", autocompletion=completion.images)
]
Why = Annotated[str | None, typer.Option(metavar="TEXT", help="Kept in the channel's history.")]


Force = Annotated[bool, typer.Option("--force", help="Although somebody would have no image any more.")]
Gate = Annotated[
    str | None, typer.Option(metavar="N|all", help="Move only when N nodes, or all that can run it, are ready.")
]


def promote(  # noqa: PLR0913 - a fixed form of the command line
    reference: Annotated[str, typer.Argument(metavar="REF", help="A release, as NAME:7.")],
    *,
    to: Annotated[str, typer.Option(metavar="CHANNEL", help="The channel to move.")] = _STABLE,
    gate: Gate = None,
    deadline: Annotated[
        int | None, typer.Option(metavar="S", min=1, help="Of a gate: how long it may take; else an hour.")
    ] = None,
    why: Why = None,
    force: Force = False,
    wait: Annotated[bool, typer.Option("--wait", help="Of a gate: until the channel has moved or stays.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Point a channel at a release, now or when nodes are ready for it. Sessions that live keep theirs."""
    if gate is not None:
        asked: _Asked = {"to": to, "nodes": _nodes(gate), "deadline": deadline, "why": why, "force": force}
        _gated(reference, asked, wait=wait, as_json=as_json, quiet=quiet)
        return
    if deadline is not None or wait:
        raise typer.BadParameter("--deadline and --wait go with --gate")
    with connect.administrator() as admin:
        channel = admin.images.promote(reference, to=to, why=why, force=force)
    _show(reference.partition(":")[0].partition("@")[0], to, channel, as_json=as_json, quiet=quiet)


def _nodes(gate: str) -> int | None:
    """Wrong usage: neither a number nor `all`."""
    if gate == "all":
        return None
    if not (gate.isascii() and gate.isdigit() and int(gate) > 0):
        raise typer.BadParameter(f"{gate!r} is neither a number of nodes nor all", param_hint="--gate")
    return int(gate)


class _Asked(TypedDict):
    to: str
    nodes: int | None
    deadline: int | None
    why: str | None
    force: bool


def _gated(reference: str, asked: _Asked, *, wait: bool, as_json: bool, quiet: bool) -> None:
    with connect.administrator() as admin:
        promotion = admin.images.promote_when_ready(reference, **asked)
        if wait:
            with Bar(
                f"{promotion.image}:{promotion.channel}", quiet=quiet or as_json, phase="waiting for nodes"
            ) as bar:
                promotion = admin.images.wait_settled(promotion, progress=bar.update)
    _show_promotion(promotion, as_json=as_json, quiet=quiet)


def promotions(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An image.", autocompletion=completion.images)],
    *,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List promotions that wait or have waited for nodes, newest first."""
    with connect.administrator() as admin:
        found = admin.images.promotions(name)
    head = ["ID", "CHANNEL", "FROM", "TO", "OUTCOME", "READY", "DEADLINE", "WHY"]
    listing.show(found, head, _promotion_row, lambda it: it.id, as_json=as_json, quiet=quiet)


def abort(channel: Where, *, as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """End the promotion of a channel that waits for nodes. The channel stays where it is."""
    from sandbay.sdk.errors import of_reason

    name, which = _where(channel)
    with connect.administrator() as admin:
        waiting = [it for it in admin.images.promotions(name) if it.outcome is None and it.channel == which]
        if not waiting:
            raise of_reason({"code": "not_found", "message": f"no promotion of {name}:{which} is under way"})
        ended = admin.images.abort_promotion(waiting[0])
    _show_promotion(ended, as_json=as_json, quiet=quiet)


def _promotion_row(it: "Promotion") -> list[object]:
    told = it.progress or {}
    ready = f"{told.get('ready')}/{told.get('needed')}" if told else None
    why = it.failure.message if it.failure else it.why or None
    moments = [ready, listing.times(it.deadline)]
    return [it.id, it.channel, it.before, it.release, it.outcome or "waiting", *moments, why]


def _show_promotion(it: "Promotion", *, as_json: bool, quiet: bool) -> None:
    says = {None: "will become", "settled": "is now"}.get(it.outcome, "does not become")
    if as_json:
        render.document(it.raw)
    elif quiet:
        render.line(it.id)
    else:
        render.line(f"{it.image}:{it.channel}", says, f"{it.image}:{it.release}", it.id)


def rollback(
    channel: Where,
    *,
    why: Why = None,
    force: Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Point a channel at the release before. Sessions that live keep theirs."""
    name, which = _where(channel)
    with connect.administrator() as admin:
        moved = admin.images.rollback(name, channel=which, why=why, force=force)
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
