"""Register a release: read and verify the source, copy its blobs, decide who can run it, append it pending.

Nothing is in the catalog before every blob is in the installation's store. A wish to prove it on one node is
written with it; the first proof makes it active (`app.nodes`). Identical content is the release there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image
from sandbay.app.registries import open_registry
from sandbay.app.select import current_deployment
from sandbay.app.uploads import open_source
from sandbay.domain.catalog import ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import PublishId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, is_channel_name
from sandbay.domain.release import ContentKey, Release, ReleaseState, ReleaseStatus, Variant
from sandbay.flow.identify import identify, undeclared
from sandbay.ports.changes import AddRelease, AddWish, Change, Conflict, ConflictKind
from sandbay.ports.image_source import ImageSource, Progress, Wanted
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
class Runtime:
    """The flat form of an identity: where it was built from, and artifacts under their fixed names."""

    source_commit: str | None
    artifacts: Mapping[str, str]


@dataclass(frozen=True)
class Registration:
    """What is asked. `platforms` None means those of the pools; `providers` None means all that can run it.

    `artifacts` and `runtime` state what is known of it; without a source they are all that there is.
    """

    source: Source | None
    source_commit: str | None = None
    platforms: Sequence[Platform] | None = None
    providers: Sequence[str] | None = None
    promote: str | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)
    runtime: Runtime | None = None

    @property
    def stated(self) -> Sequence[Mapping[str, str]]:
        """Every word on artifacts."""
        return [self.artifacts] if self.runtime is None else [self.runtime.artifacts, self.artifacts]

    @property
    def commit(self) -> str | None:
        """Whoever says it."""
        return self.source_commit or (self.runtime.source_commit if self.runtime else None)


@dataclass(frozen=True)
class Registered:
    """`created` is False when identical content was there already."""

    held: ReleaseEntry
    created: bool


def register(
    core: Core, actor: Actor, name_or_id: str, asked: Registration, progress: Progress = lambda _: None
) -> Registered:
    """Read, verify, copy, append. Refused content leaves no release behind."""
    entry = find_image(core, name_or_id)
    _check(core, entry, asked)
    try:
        read = _read(core, asked, progress)
        if len(read) > 1 and any(asked.stated):
            message = "artifacts are of one platform: name that one alone"
            raise RefusedError(Reason.INVALID_BODY, message, param="platforms")
        variants = tuple(_identified(core, asked, variant) for variant in read)
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


def _read(core: Core, asked: Registration, progress: Progress) -> tuple[Variant, ...]:
    """What the bytes tell; without a source variants of which nothing is known yet."""
    platforms = tuple(asked.platforms or _pool_platforms(core))
    match asked.source:
        case None:
            return tuple(Variant(p, {}, ()) for p in asked.platforms or [current_deployment(core).default_platform])
        case FromUpload(upload, tag):
            opened, wanted = open_source(core, upload), Wanted(platforms, tag)
        case FromRegistry(reference):
            opened, wanted = open_registry(core, reference), Wanted(platforms)
        case FromBuild(built, _):
            opened, wanted = built, Wanted(platforms)
        case _:
            assert_never(asked.source)
    return opened.read(wanted, core.blobs, progress)


def _identified(core: Core, asked: Registration, variant: Variant) -> Variant:
    whole = identify(_with_origin(asked.source, variant), asked.stated, core.declarations, asked.providers)
    if isinstance(whole, Refusal):
        raise RefusedError.of(whole)
    return whole


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
    unknown = undeclared(asked.artifacts, core.declarations)
    if unknown is not None:
        raise RefusedError.of(unknown)
    commits = {asked.source_commit, asked.runtime.source_commit if asked.runtime else None} - {None}
    if len(commits) > 1:
        message = "source_commit and runtime.source_commit differ"
        raise RefusedError(Reason.NOT_ONE_DISTRIBUTION, message, param="source_commit")


def _pool_platforms(core: Core) -> list[Platform]:
    deployment = current_deployment(core)
    return sorted({p.platform for p in deployment.pools} or {deployment.default_platform})


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
    release = Release(ReleaseId(core.ids.new("release")), entry.image.id, number, variants, asked.commit)
    facts: dict[str, object] = {"release": f"{entry.image.name}:{number}", "digests": [v.digest for v in variants]}
    if isinstance(asked.source, FromRegistry):
        facts |= {"source": variants[0].source, "tag": asked.source.reference.tag}
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


def _with_origin(source: Source | None, variant: Variant) -> Variant:
    """Note where a registry had it: by digest, since a tag may mean something else tomorrow."""
    if not isinstance(source, FromRegistry):
        return variant
    found = replace(source.reference, tag=None, digest=variant.index_digest or variant.digest)
    return replace(variant, source=str(found))


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
