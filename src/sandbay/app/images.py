"""The catalog's use cases: images and their states. Registering is `app.register`, channels move in `app.channels`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.access import revision_stale
from sandbay.app.core import Actor, Core
from sandbay.app.select import current_deployment
from sandbay.domain.catalog import Channel, Image, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.ceiling import Tier
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ImageId
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import STABLE, is_image_name
from sandbay.domain.release import RELEASE_MOVES, ReleaseState
from sandbay.ports.changes import AddImage, ChangeImage, Conflict, ConflictKind, MoveRelease
from sandbay.ports.store import CatalogOf, Images

_NAME_RULE = "lower-case letters, digits and -, at most 63, not starting with -"


def list_images(core: Core) -> Sequence[ImageEntry]:
    """All, by name."""
    return core.store.read(Images())


def find_image(core: Core, name_or_id: str) -> ImageEntry:
    """By name or id, or `image_unknown`."""
    entry = core.store.read(CatalogOf(frozenset({name_or_id}))).image(name_or_id)
    if entry is None:
        raise RefusedError(Reason.IMAGE_UNKNOWN, f"there is no image {name_or_id}")
    return entry


def find_release(entry: ImageEntry, number: int) -> ReleaseEntry:
    """By number, or `release_unknown`."""
    held = entry.releases.get(number)
    if held is None:
        name = entry.image.name
        details = {"releases": sorted(entry.releases)}
        raise RefusedError(Reason.RELEASE_UNKNOWN, f"{name} has no release {number}", details=details)
    return held


def find_channel(entry: ImageEntry, name: str) -> Channel:
    """By name, or `channel_unknown`."""
    channel = entry.channels.get(name)
    if channel is None:
        details = {"channels": sorted(entry.channels)}
        raise RefusedError(Reason.CHANNEL_UNKNOWN, f"{entry.image.name} has no channel {name}", details=details)
    return channel


def create_image(core: Core, actor: Actor, name: str, description: str, labels: Mapping[str, str]) -> ImageEntry:
    """A new entry without releases. A name is never used twice."""
    if not is_image_name(name):
        message = f"an image name has {_NAME_RULE}"
        raise RefusedError(Reason.INVALID_BODY, message, param="name")
    image = Image(ImageId(core.ids.new("image")), name, core.clock.now(), description, dict(labels))
    try:
        core.store.apply(
            AddImage(image, core.settings.images), audit.done(core, actor, "image.create", image.id, {"name": name})
        )
    except Conflict as conflict:
        if conflict.kind is ConflictKind.LIMIT:
            raise _limit("images", core.settings.images) from conflict
        message = f"the name {name} is or was used"
        raise RefusedError(Reason.NAME_TAKEN, message, param="name", details={"image": conflict.current}) from conflict
    return ImageEntry(image)


def _limit(what: str, bound: int) -> RefusedError:
    return RefusedError(
        Reason.LIMIT_REACHED, f"this installation holds at most {bound} {what}", details={"limit": what, "bound": bound}
    )


def change_image(
    core: Core,
    actor: Actor,
    name_or_id: str,
    *,
    expected_revision: int | None,
    description: str | None = None,
    labels: Mapping[str, str] | None = None,
    state: ImageState | None = None,
    tier: Tier | None = None,
) -> ImageEntry:
    """Change what is given. The default image cannot be retired while it is that."""
    entry = find_image(core, name_or_id)
    image = entry.image
    if expected_revision is not None and expected_revision != image.revision:
        raise _stale_image(image)
    if state is ImageState.RETIRED and current_deployment(core).default_image == image.id:
        message = f"{image.name} is the deployment's default image; choose another default first"
        raise RefusedError(Reason.IN_USE, message, param="state", details={"by": ["deployment default"]})
    changed = replace(
        image,
        description=image.description if description is None else description,
        labels=image.labels if labels is None else dict(labels),
        state=state or image.state,
        tier=tier or image.tier,
        revision=image.revision + 1,
    )
    facts = {"from": image.state.value, "to": changed.state.value, "tier": changed.tier.value}
    try:
        core.store.apply(ChangeImage(changed), audit.done(core, actor, "image.change", image.id, facts))
    except Conflict as conflict:
        raise revision_stale(conflict) from conflict
    core.changed.set()
    return replace(entry, image=changed)


def _stale_image(image: Image) -> RefusedError:
    return RefusedError(
        Reason.REVISION_STALE,
        "the image has changed since you read it; read it again",
        param="expected_revision",
        details={"current": image.revision},
    )


def change_release(core: Core, actor: Actor, name_or_id: str, number: int, state: ReleaseState) -> ReleaseEntry:
    """Deprecate, retire or reactivate. A release that a channel points at cannot be retired."""
    entry = find_image(core, name_or_id)
    held = find_release(entry, number)
    now = held.status.state
    if now is state:
        return held
    if state not in RELEASE_MOVES[now] or now is ReleaseState.PENDING:
        details = {"state": now.value}
        raise RefusedError(
            Reason.INVALID_BODY, f"a {now.value} release cannot become {state.value}", param="state", details=details
        )
    pointing = sorted(c.name for c in entry.channels.values() if c.number == number)
    if state is ReleaseState.RETIRED and pointing:
        message = f"{entry.image.name}:{number} is what a channel points at; move the channel first"
        raise RefusedError(Reason.IN_USE, message, param="state", details={"by": [f"channel {c}" for c in pointing]})
    try:
        core.store.apply(
            MoveRelease(held.release.id, frozenset({now}), state),
            audit.done(core, actor, "release.change", held.release.id, {"from": now.value, "to": state.value}),
        )
    except Conflict as conflict:
        raise revision_stale(conflict) from conflict
    core.changed.set()
    return find_release(find_image(core, name_or_id), number)


def stable_or(entry: ImageEntry, number: int | None) -> ReleaseEntry:
    """The release of this number, or what `stable` points at."""
    return find_release(entry, number if number is not None else find_channel(entry, STABLE).number)
