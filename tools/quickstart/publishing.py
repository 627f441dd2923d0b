"""Images published side by side, and what each of them is doing meanwhile."""

import time
from collections.abc import Iterable
from pathlib import Path

from sandbay.sdk.publishes import Publish
from tools.machine import ROOT
from tools.quickstart.guide import Guide, TourError

_LOOK_EVERY = 0.3
_SAY_EVERY = 15.0


def publish(guide: Guide, folders: Iterable[Path]) -> None:
    """Publish the images of these folders at once, each with its own command, and wait for all of them."""
    begun = []
    for folder in folders:
        arguments = ("images", "publish", str(folder.relative_to(ROOT)), "--promote", "stable")
        begun.append(Publish.of(guide.ask(*arguments)))
    _follow(guide, begun)


def _follow(guide: Guide, publishes: list[Publish]) -> None:
    """A line for each that has ended, and now and then one about those that have not."""
    since = said = time.monotonic()
    waiting = {publish.id: publish for publish in publishes}
    with guide.administrator() as admin:
        while waiting:
            for publish in [admin.publishes.get(publish) for publish in waiting]:
                waiting[publish.id] = publish
                if publish.ended:
                    guide.say(f"  {_result(waiting.pop(publish.id), time.monotonic() - since)}")
            if time.monotonic() - said > _SAY_EVERY:
                said = time.monotonic()
                busy = ", ".join(f"{publish.image} {publish.phase}" for publish in waiting.values())
                guide.say(f"  after {said - since:.0f} s: {busy}")
            time.sleep(_LOOK_EVERY if waiting else 0)


def _result(publish: Publish, seconds: float) -> str:
    if publish.phase != "done":
        why = publish.fault.message if publish.fault else publish.phase
        raise TourError(f"{publish.image} was not published: {why}\nIts log: sandbay publishes log {publish.id}")
    how = f"built in {seconds:.0f} s" if publish.built else "unchanged, not built again"
    below = ", ".join(f"shares {base.layers} layers with {base.release}" for base in publish.bases if base.release)
    return f"{publish.release:<14}{how}" + (f", {below}" if below else "")
