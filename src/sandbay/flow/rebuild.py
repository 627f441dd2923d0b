"""What a publish has to do: build, or answer the release that these very inputs gave before.

Nothing but the inputs decides it. A release that takes no Session any more, or that was rejected, answers nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.domain.ids import ReleaseId
from sandbay.domain.publish import Inputs


@dataclass(frozen=True)
class Earlier:
    """An earlier publish of the image that came to a release; `usable` when that may still be chosen."""

    inputs: Inputs
    release: ReleaseId
    usable: bool


@dataclass(frozen=True, slots=True)
class Rebuild:
    """`release` None: build. `why` is for people and begins with one of a few fixed words."""

    release: ReleaseId | None
    why: str


def rebuild(inputs: Inputs, earlier: Sequence[Earlier], *, asked: bool) -> Rebuild:
    """`earlier` newest first. With `asked`, it is built whatever there is: a distribution may have newer packages."""
    same = next((it for it in earlier if it.inputs.digest == inputs.digest and it.usable), None)
    if same is not None and not asked:
        return Rebuild(same.release, "unchanged: these inputs gave this release")
    if not earlier:
        return Rebuild(None, "new: it was never published from these inputs here")
    if asked:
        return Rebuild(None, "asked: a rebuild was asked for")
    changes = _changes(inputs, earlier[0].inputs)
    return Rebuild(None, f"changed: {', '.join(changes)}" if changes else "gone: what these inputs gave is retired")


def _changes(now: Inputs, before: Inputs) -> list[str]:
    differ = {
        "files": now.files != before.files or now.dockerfile != before.dockerfile,
        "platform": now.platform != before.platform,
        "builder": now.builder != before.builder,
    }
    known = {base.text: base.digest for base in before.bases}
    bases = [f"base {base.text}" for base in now.bases if known.get(base.text) != base.digest]
    return [*(what for what, differs in differ.items() if differs), *bases]
