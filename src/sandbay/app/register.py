"""Register a release: read and verify the source, copy its blobs, decide who can run it, append it pending.

Nothing is in the catalog before every blob is in the installation's store. A wish to prove it on one node is
written with it; the first proof makes it active (`app.nodes`). Identical content is the release there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sandbay.app import audit
from sandbay.app.contracts import ask_check
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image, find_release
from sandbay.app.registries import open_registry
from sandbay.app.select import current_deployment
from sandbay.app.uploads import open_source
from sandbay.app.wants import proof_wishes
from sandbay.domain.catalog import ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.contract import Contract
from sandbay.domain.declaration import Declaration
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, is_channel_name
from sandbay.domain.release import Release, ReleaseState, ReleaseStatus, Variant
from sandbay.flow.prove import asked_again
from sandbay.ports.changes import AddRelease, Change, Conflict, ConflictKind
from sandbay.ports.image_source import Wanted

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
class Registration:
    """What is asked. `platforms` None means those of the pools; `providers` None means all that can run it.

    `tools`: tool → the command that prints its version; None says nothing of them.
    """

    source: FromUpload | FromRegistry
    source_commit: str | None = None
    platforms: Sequence[Platform] | None = None
    providers: Sequence[str] | None = None
    promote: str | None = None
    tools: Mapping[str, str] | None = None


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
            if not _promises_more(known, asked) or ask_check(core, actor, entry, known, asked.tools or {}):
                return Registered(find_release(find_image(core, name_or_id), known.release.number), created=False)
            continue
        held = _append(core, actor, entry, variants, asked)
        if held is not None:
            core.changed.set()
            return Registered(held, created=True)
    raise RefusedError(Reason.REVISION_STALE, f"{entry.image.name} keeps getting releases; try again")


def _read(core: Core, source: FromUpload | FromRegistry, platforms: tuple[Platform, ...]) -> tuple[Variant, ...]:
    if isinstance(source, FromUpload):
        opened, wanted = open_source(core, source.upload), Wanted(platforms, source.tag)
    else:
        opened, wanted = open_registry(core, source.reference), Wanted(platforms)
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
    release = Release(ReleaseId(core.ids.new("release")), entry.image.id, number, variants, asked.source_commit)
    contract = Contract(dict(asked.tools), 1) if asked.tools else Contract()
    facts: dict[str, object] = {"release": f"{entry.image.name}:{number}", "digests": [v.digest for v in variants]}
    if isinstance(asked.source, FromRegistry):
        facts |= _origin(asked.source.reference, variants[0])
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


def _origin(reference: OciReference, first: Variant) -> dict[str, str | None]:
    """Where it came from: by digest, the tag as a remark only."""
    found = replace(reference, tag=None, digest=first.index_digest or first.digest)
    return {"source": str(found), "tag": reference.tag}
