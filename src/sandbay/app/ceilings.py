"""Allow-lists, request overrides and grants. Only the administrator writes them."""

from collections.abc import Mapping, Sequence

from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image
from sandbay.app.standing import by, drop_row, put_row
from sandbay.domain.ceiling import AllowList, AllowListAt, Grant, Override, OverrideAt
from sandbay.domain.errors import RefusedError
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason
from sandbay.domain.trail import Level
from sandbay.ports.store import CatalogOf

CEILINGS = (Level.DEPLOYMENT, Level.PROJECT, Level.SCOPE)
"""Where an allow-list and a request override can stand."""

GRANTED = (Level.PROJECT, Level.SCOPE)
"""Who can be granted a restricted image."""


def allow(
    core: Core, actor: Actor, subject: Subject, allowed: AllowList, reason: str | None, expected: int | None
) -> AllowListAt:
    """Write the subject's allow-list. Each name on it is an image's."""

    def check(_there: object) -> None:
        known = core.store.read(CatalogOf(allowed.names))
        unknown = sorted(name for name in allowed.names if known.image(name) is None)
        if unknown:
            raise RefusedError(
                Reason.IMAGE_UNKNOWN, f"there is no image {unknown[0]}", param="images", details={"images": unknown}
            )

    return put_row(core, actor, AllowListAt(subject, allowed, by(core, actor, reason)), expected, check)


def override(
    core: Core, actor: Actor, subject: Subject, said: Override, reason: str | None, expected: int | None
) -> OverrideAt:
    """Say whether Session requests may name an image there."""
    return put_row(core, actor, OverrideAt(subject, said, by(core, actor, reason)), expected)


def grant(core: Core, actor: Actor, subject: Subject, image: str, reason: str | None) -> Grant:
    """Let a project or scope use a restricted image. Of one that is not restricted it says nothing yet."""
    granted = find_image(core, image).image
    return put_row(core, actor, Grant(subject, granted.id, by(core, actor, reason)), None)


def withdraw(core: Core, actor: Actor, subject: Subject, image: str) -> None:
    """Take a grant away. Sessions that are there stay."""
    drop_row(core, actor, Grant, subject, None, image=find_image(core, image).image.id)


def image_names(core: Core, grants: Sequence[Grant]) -> Mapping[str, str]:
    """Id → name of the images that these grants are of."""
    known = core.store.read(CatalogOf(frozenset(it.image for it in grants)))
    return {entry.image.id: entry.image.name for entry in known.entries}
