"""Register a release: read and verify the source, copy its blobs, decide who can run it, append it pending.

Nothing is in the catalog before every blob is in the installation's store. A wish to prove it on one node is
written with it; the first proof makes it active (`app.nodes`). Identical content is the release there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image
from sandbay.app.registries import open_registry
from sandbay.app.select import current_deployment
from sandbay.app.uploads import open_source
from sandbay.domain.catalog import ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.declaration import Declaration
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import PublishId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, is_channel_name
from sandbay.domain.release import ContentKey, Release, ReleaseState, ReleaseStatus, Variant
from sandbay.ports.changes import AddRelease, AddWish, Change, Conflict, ConflictKind
from sandbay.ports.image_source import ImageSource, Wanted
from sandbay.ports.store import Nodes

_TRIES = 10


@dataclass(frozen=True)
class FromUpload:
    """Received bytes; `tag` says which image where there are several."""

    upload: str
    tag: str | None = None


@dataclass(frozen=True)
class FromRegistry:
    """A registry's tag or digest. What is registered is the digest that the tag means now."""

    reference: OciReference


@dataclass(frozen=True)
class FromBuild:
    """What a publish has built, as long as the builder keeps it."""

    built: ImageSource
    publish: PublishId


Source = FromUpload | FromRegistry | FromBuild


@dataclass(frozen=True)
class Registration:
    """What is asked. `platforms` None means those of the pools; `providers` None means all that can run it."""

    source: Source
    source_commit: str | None = None
    platforms: Sequence[Platform] | None = None
    providers: Sequence[str] | None = None
    promote: str | None = None


@dataclass(frozen=True)
class Registered:
    """`created` is False when identical content was there already."""

    held: ReleaseEntry
    created: bool


def register(core: Core, actor: Actor, name_or_id: str, asked: Registration) -> Registered:
    """Read, verify, copy, append. Refused content leaves no release behind."""
    entry = find_image(core, name_or_id)
    _check(core, entry, asked)
    platforms = tuple(asked.platforms or _pool_platforms(core))
    try:
        read = _read(core, asked.source, platforms)
        variants = tuple(replace(v, providers=_providers(core, v, asked.providers)) for v in read)
    except RefusedError as error:
        audit.refused(core, actor, "release.register", entry.image.id, error)
        raise
    for _ in range(_TRIES):
        entry = find_image(core, name_or_id)
        known = _identical(entry, variants)
        if known is not None:
            return Registered(known, created=False)
        held = _append(core, actor, entry, variants, asked)
        if held is not None:
            core.changed.set()
            return Registered(held, created=True)
    raise RefusedError(Reason.REVISION_STALE, f"{entry.image.name} keeps getting releases; try again")


def _read(core: Core, source: Source, platforms: tuple[Platform, ...]) -> tuple[Variant, ...]:
    match source:
        case FromUpload(upload, tag):
            opened, wanted = open_source(core, upload), Wanted(platforms, tag)
        case FromRegistry(reference):
            opened, wanted = open_registry(core, reference), Wanted(platforms)
        case FromBuild(built, _):
            opened, wanted = built, Wanted(platforms)
        case _:
            assert_never(source)
    return opened.read(wanted, core.blobs, lambda *_: None)


def _check(core: Core, entry: ImageEntry, asked: Registration) -> None:
    if entry.image.state is ImageState.RETIRED:
        raise RefusedError(Reason.IMAGE_RETIRED, f"{entry.image.name} is retired; reactivate it first")
    if asked.promote is not None and not is_channel_name(asked.promote):
        raise RefusedError(Reason.INVALID_BODY, f"{asked.promote!r} is no channel name", param="promote")
    for kind in asked.providers or ():
        if kind not in core.declarations:
            details = {"installed": sorted(core.declarations)}
            message = f"no provider {kind!r} is installed"
            raise RefusedError(Reason.PROVIDER_UNKNOWN, message, param="providers", details=details)


def _pool_platforms(core: Core) -> list[Platform]:
    deployment = current_deployment(core)
    return sorted({p.platform for p in deployment.pools} or {deployment.default_platform})


def _providers(core: Core, variant: Variant, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The kinds that can run it; exactly those asked for, or a refusal that names the gap."""
    kinds = sorted(core.declarations) if asked is None else list(asked)
    gaps = {kind: _gap(core.declarations[kind], variant) for kind in kinds}
    fits = tuple(kind for kind in kinds if gaps[kind] is None)
    if not fits or (asked is not None and len(fits) < len(kinds)):
        kind, gap = next((k, g) for k, g in gaps.items() if g is not None)
        raise RefusedError(
            Reason.RELEASE_INCOMPLETE, f"{kind} cannot run it: {gap}", param=gap, details={"provider": kind}
        )
    return fits


def _gap(declaration: Declaration, variant: Variant) -> str | None:
    """What keeps a provider from running a variant, or None. A foreign platform is no gap: a pool may come."""
    for name, rule in declaration.artifacts.items():
        artifact = variant.artifacts.get(name)
        if artifact is None or not rule.fits(artifact.value):
            return f"artifacts.{name}"
    if len(variant.layers) > declaration.max_layers:
        return "layers"
    return None


def _identical(entry: ImageEntry, variants: Sequence[Variant]) -> ReleaseEntry | None:
    keys = {v.content_key for v in variants}
    for held in entry.releases.values():
        if {v.content_key for v in held.release.variants} == keys:
            return held
    return None


def _append(
    core: Core, actor: Actor, entry: ImageEntry, variants: tuple[Variant, ...], asked: Registration
) -> ReleaseEntry | None:
    """One transaction; None when somebody else took the number first."""
    number = max(entry.releases, default=0) + 1
    release = Release(ReleaseId(core.ids.new("release")), entry.image.id, number, variants, asked.source_commit)
    facts: dict[str, object] = {"release": f"{entry.image.name}:{number}", "digests": [v.digest for v in variants]}
    if isinstance(asked.source, FromRegistry):
        facts |= _origin(asked.source.reference, variants[0])
    if isinstance(asked.source, FromBuild):
        facts["publish"] = asked.source.publish
    changes: list[Change] = [
        AddRelease(release, core.clock.now(), core.settings.releases_per_image, asked.promote),
        *proof_wishes(core, variants),
    ]
    try:
        core.store.apply(*changes, audit.done(core, actor, "release.register", release.id, facts))
    except Conflict as conflict:
        if conflict.kind is ConflictKind.LIMIT:
            bound = core.settings.releases_per_image
            message = f"an image keeps at most {bound} releases"
            details = {"limit": "releases_per_image", "bound": bound}
            raise RefusedError(Reason.LIMIT_REACHED, message, details=details) from conflict
        return None
    return ReleaseEntry(release, ReleaseStatus(ReleaseState.PENDING, None, asked.promote))


def _origin(reference: OciReference, first: Variant) -> dict[str, str | None]:
    """Where it came from: by digest, the tag as a remark only."""
    found = replace(reference, tag=None, digest=first.index_digest or first.digest)
    return {"source": str(found), "tag": reference.tag}


def proof_wishes(core: Core, variants: Sequence[Variant]) -> list[AddWish]:
    """Each variant on one node that can run it; none where no pool supports it."""
    deployment = current_deployment(core)
    now = core.clock.now()
    wishes = []
    for variant in variants:
        pools = [p for p in deployment.pools if p.platform == variant.platform and p.provider in variant.providers]
        able = [n for n in core.store.read(Nodes()) if any(n.serves(p) for p in pools)]
        online = sorted(able, key=lambda n: (not n.online(now), n.name))
        wishes += [AddWish(ContentKey(variant.content_key), node.id, now) for node in online[:1]]
    return wishes
