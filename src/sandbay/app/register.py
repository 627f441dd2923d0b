"""Register a release: read and verify the source, copy its blobs, decide who can run it, append it pending.

Nothing is in the catalog before every blob is in the installation's store. A wish to prove it on one node is
written with it; the first proof makes it active (`app.nodes`). Identical content is the release there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from sandbay.app import audit
from sandbay.app.contracts import ask_check
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image, find_release
from sandbay.app.registries import open_registry
from sandbay.app.retry import blobs_are_whole
from sandbay.app.select import current_deployment
from sandbay.app.uploads import open_source
from sandbay.app.wants import proof_wishes
from sandbay.domain.catalog import ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.contract import Contract
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import PublishId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, is_channel_name
from sandbay.domain.release import Release, ReleaseState, ReleaseStatus, Variant
from sandbay.flow.identify import identify, undeclared
from sandbay.flow.prove import asked_again
from sandbay.ports.changes import AddRelease, Change, Conflict, ConflictKind
from sandbay.ports.image_source import ImageSource, Progress, Wanted

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

    `artifacts` and `runtime` state what is known of it; without a source they are all that there is. `tools`: tool →
    the command that prints its version; None says nothing of them.
    """

    source: Source | None
    source_commit: str | None = None
    platforms: Sequence[Platform] | None = None
    providers: Sequence[str] | None = None
    promote: str | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)
    runtime: Runtime | None = None
    tools: Mapping[str, str] | None = None

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
        blobs_are_whole(core, actor, {digest for variant in read for digest, _ in variant.blobs}, "registered")
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
            if not _promises_more(known, asked) or ask_check(core, actor, entry, known, asked.tools or {}):
                return Registered(find_release(find_image(core, name_or_id), known.release.number), created=False)
            continue
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


def _promises_more(known: ReleaseEntry, asked: Registration) -> bool:
    """Whether the release that is there should promise other tools. What is not said changes nothing.

    Bytes that are at fault stay so, whatever their tools would be.
    """
    for_good = known.status.state is ReleaseState.REJECTED and asked_again(known.status) is None
    return not for_good and asked.tools is not None and dict(asked.tools) != dict(known.contract.tools)


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
    contract = Contract(dict(asked.tools), 1) if asked.tools else Contract()
    facts: dict[str, object] = {"release": f"{entry.image.name}:{number}", "digests": [v.digest for v in variants]}
    if isinstance(asked.source, FromRegistry):
        facts |= {"source": variants[0].source, "tag": asked.source.reference.tag}
    if isinstance(asked.source, FromBuild):
        facts["publish"] = asked.source.publish
    changes: list[Change] = [
        AddRelease(release, core.clock.now(), core.settings.releases_per_image, asked.promote, contract),
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
    return ReleaseEntry(release, ReleaseStatus(ReleaseState.PENDING, None, asked.promote), contract)


def _with_origin(source: Source | None, variant: Variant) -> Variant:
    """Note where a registry had it: by digest, since a tag may mean something else tomorrow."""
    if not isinstance(source, FromRegistry):
        return variant
    found = replace(source.reference, tag=None, digest=variant.index_digest or variant.digest)
    return replace(variant, source=str(found))
