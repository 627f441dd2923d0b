"""Publishing as a caller sees it: planned, started, looked at, cancelled. The work itself is `app.publishing`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.publish_inputs import Prepared, find_bases, open_context, origin, platform_of, prepare, registered
from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.catalog import ImageEntry, ImageState
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import PublishId, ReleaseId
from sandbay.domain.publish import FINISHED, Base, Bootstrap, Inputs, Publish, PublishOrder, PublishPhase
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, is_channel_name, is_image_name
from sandbay.domain.release import NOT_RUNNABLE, Fault, Layer
from sandbay.flow.rebuild import Earlier, Rebuild, rebuild
from sandbay.ports.changes import AddPublish, ChangePublish, Conflict, ConflictKind
from sandbay.ports.records import Page
from sandbay.ports.store import CatalogOf, Publishes, PublishOf, StartedWith

_AT_ONCE = frozenset({PublishPhase.QUEUED, PublishPhase.CHECKING})
_HISTORY = Page(limit=50)
_TRIES = 10


@dataclass(frozen=True)
class Start:
    """`created` is False when this Idempotency-Key has been used for it before."""

    publish: Publish
    created: bool


@dataclass(frozen=True)
class Plan:
    """What a publish would do now. `rebuild` None: that shows only once a registry has been asked for a base."""

    prepared: Prepared
    bases: tuple[Base, ...]
    shared: tuple[Layer, ...]
    rebuild: Rebuild | None
    release: str | None


def start(core: Core, actor: Actor, order: PublishOrder, key: str | None) -> Start:
    """Check what can be checked without building, and queue it."""
    body_hash = sha256(canonical(order))
    known = _replay(core, key, body_hash)
    if known is not None:
        return Start(known, created=False)
    try:
        prepared = check(core, order)
    except RefusedError as error:
        audit.refused(core, actor, "publish.start", order.name or order.upload, error)
        raise
    name = prepared.recipe.name
    publish = Publish(PublishId(core.ids.new("publish")), name, order, actor.principal, core.clock.now())
    told = audit.done(core, actor, "publish.start", publish.id, {"image": name, "promote": order.promote})
    try:
        core.store.apply(AddPublish(publish, key, body_hash), told)
    except Conflict as conflict:
        known = _replay(core, key, body_hash) if conflict.kind is ConflictKind.TAKEN else None
        if known is None:
            raise
        return Start(known, created=False)
    core.changed.set()
    return Start(publish, created=True)


def _replay(core: Core, key: str | None, body_hash: str) -> Publish | None:
    started = core.store.read(StartedWith(key)) if key is not None else None
    if started is None:
        return None
    if started.body_hash != body_hash:
        message = "this Idempotency-Key was used with another body"
        details = {"publish": started.id}
        raise RefusedError(Reason.IDEMPOTENCY_CONFLICT, message, param="Idempotency-Key", details=details)
    return core.store.read(PublishOf(started.id))


def check(core: Core, order: PublishOrder) -> Prepared:
    """What an order asks for, once it is understood and nothing that is here already speaks against it."""
    if order.promote is not None and not is_channel_name(order.promote):
        raise RefusedError(Reason.INVALID_BODY, f"{order.promote!r} is no channel name", param="promote")
    if (order.name is None) != (order.dockerfile is None):
        raise RefusedError(Reason.INVALID_BODY, "name and dockerfile go together", param="name")
    if order.name is not None and not is_image_name(order.name):
        raise RefusedError(Reason.INVALID_BODY, "an image is called by lower-case letters, digits and -", param="name")
    with open_context(core, order.upload) as context:
        prepared = prepare(context, order)
    entry = entry_of(core, prepared.recipe.name)
    if entry is not None and entry.image.state is ImageState.RETIRED:
        raise RefusedError(Reason.IMAGE_RETIRED, f"{entry.image.name} is retired; reactivate it first")
    for text in prepared.containerfile.images:
        if not isinstance(origin(text), Bootstrap | OciReference):
            registered(core, text, platform_of(core))
    return prepared


def entry_of(core: Core, name: str) -> ImageEntry | None:
    """The image of this name, when there is one."""
    return core.store.read(CatalogOf(frozenset({name}))).image(name)


def plan(core: Core, order: PublishOrder) -> Plan:
    """What publishing this would do now. Nothing is built, fetched or written."""
    prepared = check(core, order)
    file = prepared.containerfile
    asked = [text for text in file.images if isinstance(origin(text), OciReference)]
    if asked:
        return Plan(prepared, tuple(Base(text, "") for text in asked), (), None, None)
    bases = find_bases(core, file, platform_of(core))
    decided = decide(core, order, prepared, bases.recorded)[1]
    below = None if file.base is None else bases.built_on[file.base]
    shared = () if below is None or isinstance(below, Bootstrap) else below.layers
    return Plan(prepared, bases.recorded, shared, decided, _named(core, decided.release))


def _named(core: Core, release: ReleaseId | None) -> str | None:
    owner = None if release is None else core.store.read(CatalogOf(releases=frozenset({release}))).owner_of(release)
    return None if owner is None else f"{owner[0].image.name}:{owner[1]}"


def decide(core: Core, order: PublishOrder, prepared: Prepared, bases: tuple[Base, ...]) -> tuple[Inputs, Rebuild]:
    """The inputs, and whether they have to be built."""
    platform = str(platform_of(core))
    inputs = Inputs(prepared.files, prepared.dockerfile, bases, platform, core.builder.version)
    name = prepared.recipe.name
    entry = entry_of(core, name)
    states = {} if entry is None else {held.release.id: held.status.state for held in entry.releases.values()}
    earlier = [
        Earlier(it.inputs, it.release, it.release in states and states[it.release] not in NOT_RUNNABLE)
        for it in core.store.read(Publishes(name, frozenset({PublishPhase.DONE}), _HISTORY))
        if it.inputs is not None and it.release is not None
    ]
    return inputs, rebuild(inputs, earlier, asked=order.rebuild)


def find(core: Core, publish: str) -> Publish:
    """By id, or `not_found`."""
    found = core.store.read(PublishOf(PublishId(publish)))
    if found is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no publish {publish}")
    return found


def list_publishes(core: Core, image: str | None, page: Page) -> Sequence[Publish]:
    """Newest first; of one image or of all."""
    return core.store.read(Publishes(image, None, page))


def cancel(core: Core, actor: Actor, publish: str) -> Publish:
    """End it, at once or as soon as its build has stopped. What is done or promoting is not undone."""
    for _ in range(_TRIES):
        now = find(core, publish)
        if now.phase is PublishPhase.CANCELLED or now.cancelled_by is not None:
            return now
        if now.phase in FINISHED | {PublishPhase.PROMOTING}:
            details = {"phase": now.phase.value}
            raise RefusedError(Reason.ALREADY_ENDED, f"it is {now.phase} already", details=details)
        after = replace(now, cancelled_by=actor.principal, revision=now.revision + 1)
        if now.phase in _AT_ONCE:
            after = replace(after, phase=PublishPhase.CANCELLED, fault=CANCELLED, ended_at=core.clock.now())
        try:
            core.store.apply(ChangePublish(after), audit.done(core, actor, "publish.cancel", now.id))
        except Conflict:
            continue
        core.changed.set()
        return after
    raise RefusedError(Reason.REVISION_STALE, "it keeps moving; try again")


CANCELLED = Fault(Reason.CANCELLED, "it was cancelled")


def read_log(core: Core, publish: str, offset: int, limit: int) -> bytes:
    """Bytes of what the build said, from `offset` on."""
    return core.build_logs.read(find(core, publish).id, offset, limit)


def release_of(core: Core, publish: Publish) -> str | None:
    """Its release as NAME:NUMBER."""
    return _named(core, publish.release)
