"""`sandbay images what-if`: whose Sessions would run something else if a binding, a list, a channel … were written."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from sandbay.cli import connect, options, render

_Bind = Annotated[
    str | None, typer.Option(metavar="SUBJECT=REF", help="A binding; SUBJECT as scope:team:growth. Without REF: none.")
]
_Allow = Annotated[
    str | None, typer.Option(metavar="SUBJECT=NAME,…", help="An allow-list of these images; without NAME of none.")
]
_Promote = Annotated[str | None, typer.Option(metavar="NAME:CHANNEL=N", help="The channel pointed at release N.")]
_Retire = Annotated[str | None, typer.Option(metavar="NAME[:N]", help="The image, or its release N, were retired.")]


def what_if(
    *,
    bind: _Bind = None,
    enforce: Annotated[bool, typer.Option("--enforce", help="The binding is enforced.")] = False,
    allow: _Allow = None,
    promote: _Promote = None,
    retire: _Retire = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List the Templates, agents, scopes and projects whose answer would change. Nothing is written."""
    said = (("--bind", bind), ("--allow", allow), ("--promote", promote), ("--retire", retire))
    given = [(option, text) for option, text in said if text is not None]
    if len(given) != 1:
        raise typer.BadParameter("say exactly one of --bind, --allow, --promote and --retire")
    if enforce and bind is None:
        raise typer.BadParameter("only a binding is enforced", param_hint="--enforce")
    supposed = _supposed(*given[0], mode="enforce" if enforce else "prefer")
    with connect.administrator() as admin:
        changes = admin.images.what_if(**supposed)
    if as_json:
        render.document({"changes": changes})
    elif quiet:
        for change in changes:
            render.line(change["kind"], change["name"])
    else:
        show(changes)


def show(changes: Sequence[Mapping[str, Any]]) -> None:
    """Those changes, or that there are none, for people."""
    if not changes:
        render.line("Nobody's image changes.")
        return
    rows = ((it["kind"], it["name"], it["project"], _answer(it["before"]), _answer(it["after"])) for it in changes)
    render.table(("KIND", "NAME", "PROJECT", "NOW", "THEN"), rows)


def _answer(answer: Mapping[str, Any]) -> object:
    return answer["image"] or answer["reason"]


def _supposed(option: str, text: str, *, mode: str) -> dict[str, Mapping[str, Any]]:
    """As the SDK takes it. Wrong usage: what is not written as the option says."""
    name, equals, rest = text.rpartition("=")
    if option == "--retire":
        image, _, number = text.partition(":")
        return {"retire": {"image": image, **({"release": _number(number, option)} if number else {})}}
    if not equals:
        raise typer.BadParameter(f"{text!r} has no =", param_hint=option)
    if option == "--bind":
        return {"binding": {"subject": name, "runtime_image_id": rest or None, "mode": mode}}
    if option == "--allow":
        return {"allow_list": {"subject": name, "images": [it for it in rest.split(",") if it]}}
    image, _, channel = name.partition(":")
    return {"channel": {"image": image, "channel": channel or "stable", "release": _number(rest, option)}}


def _number(text: str, option: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise typer.BadParameter(f"{text!r} is no release number", param_hint=option)
    return int(text)
