"""Step 1. Turn what the levels say into exactly one variant of one release, or into one named refusal.

`resolve` is handed the catalog and the deployment's declarations, nothing else. It cannot see nodes (an
import contract forbids it), so "not downloaded yet" can never become "use another one". The first level
that speaks decides; the first check that fails is the answer; nothing falls through to another candidate.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sandbay.domain.catalog import CatalogView, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Refusal
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import (
    DEFAULT,
    STABLE,
    ByChannel,
    ByDigest,
    ByNumber,
    ImageReference,
    Malformed,
    OfDefault,
    OfImage,
    OfRelease,
    parse_image,
)
from sandbay.domain.release import NOT_RUNNABLE, Release, ReleaseState, Variant
from sandbay.domain.requirement import UNKNOWN, Required, Tools, Unmet, unmet
from sandbay.domain.trail import (
    DEPRECATED,
    SUPPORT_UNCHECKED,
    DecidedBy,
    Level,
    Outcome,
    Policy,
    Saying,
    Step,
    Trail,
)

_IN_REQUEST = {Level.SESSION: "runtime_image_id", Level.TEMPLATE: "template"}
_REQUIRED_IN = {Level.SESSION: "requires", Level.TEMPLATE: "template"}


@dataclass(frozen=True)
class Selected:
    """Exactly one variant with its verified tools, who decided, and how."""

    entry: ImageEntry
    release: Release
    variant: Variant
    tools: Tools
    reference: str
    decided_by: DecidedBy
    trail: Trail


@dataclass(frozen=True, slots=True)
class Rejected:
    """The first failure, and how it came to be. `refusal.param` is a field of this request or None."""

    refusal: Refusal
    trail: Trail


@dataclass(frozen=True)
class _Candidate:
    """What the chain has found so far."""

    entry: ImageEntry
    held: ReleaseEntry
    variant: Variant


def resolve(
    sayings: Iterable[Saying],
    platform: Platform,
    policy: Policy,
    catalog: CatalogView,
    deployment: Deployment,
    required: Iterable[Required] = (),
) -> Selected | Rejected:
    """Take the strongest level's word and follow it down the whole chain. A level may speak more than once.

    What the request, the Template and its skills require is held against what was found, wherever the word came from.
    """
    ordered = sorted(sayings, key=lambda s: policy.precedence.index(s.level))
    chosen = next((s for s in ordered if s.reference is not None), None)
    if chosen is None or chosen.reference is None:
        silent = tuple(Step(s.level, Outcome.SILENT, s.subject) for s in ordered)
        return Rejected(Refusal(Reason.NO_DEFAULT_IMAGE, "nothing names an image and there is no default"), silent)
    unchecked = policy.support_may_wait and not deployment.pools
    found = _follow(chosen.reference, platform, catalog, deployment, support=not unchecked)
    checked = _at(found, chosen) if isinstance(found, Refusal) else _sufficient(found, chosen, required)
    if isinstance(checked, Refusal):
        return Rejected(checked, _trail(ordered, chosen, Outcome.REFUSED, checked.reason))
    entry, held, variant = checked.entry, checked.held, checked.variant
    trail = _trail(ordered, chosen, Outcome.CHOSEN, None) + _warnings(checked, chosen, unchecked=unchecked)
    decided = DecidedBy(chosen.level, chosen.subject)
    return Selected(entry, held.release, variant, held.tools(variant), chosen.reference, decided, trail)


def _trail(ordered: list[Saying], chosen: Saying, outcome: Outcome, reason: Reason | None) -> Trail:
    decided = ordered.index(chosen)  # by place: equal sayings are told apart by nothing else

    def step(place: int, saying: Saying) -> Step:
        if place == decided:
            return Step(saying.level, outcome, saying.subject, saying.reference, reason)
        silent = saying.reference is None
        return Step(saying.level, Outcome.SILENT if silent else Outcome.OVERRULED, saying.subject, saying.reference)

    return tuple(step(place, saying) for place, saying in enumerate(ordered))


def _at(refusal: Refusal, chosen: Saying) -> Refusal:
    """Point at the field of this request that is at fault, or at whose standing word it was."""
    param = _IN_REQUEST.get(chosen.level)
    field = {"field": "runtime_image_id"} if chosen.level is Level.TEMPLATE else {}
    facts = {"reference": chosen.reference, **field, **refusal.details}
    if chosen.level is not Level.SESSION:
        facts |= {"level": chosen.level.value, "subject": chosen.subject}
    return Refusal(refusal.reason, refusal.message, param, facts)


def _sufficient(found: _Candidate, chosen: Saying, required: Iterable[Required]) -> _Candidate | Refusal:
    """The last check: every tool that is required is verified, in a version that will do.

    At fault is the first field that requires too much, not the word that chose the image.
    """
    missing = unmet(required, found.held.tools(found.variant))
    if not missing:
        return found
    first, told = missing[0], _told(missing[0])
    name = f"{found.entry.image.name}:{found.held.release.number}"
    message = f"{first.required.requirement} is required and {name} has {_has_of(first)}"
    facts = {**told, "release": name, "unmet": [_told(it) for it in missing]}
    at = _at(Refusal(Reason.REQUIREMENTS_UNMET, message, None, facts), chosen)
    return Refusal(at.reason, at.message, _REQUIRED_IN[first.required.level], at.details)


def _told(it: Unmet) -> dict[str, object]:
    requirement = it.required.requirement
    told: dict[str, object] = {"tool": requirement.tool, "wanted": requirement.wanted, "found": it.found}
    if it.required.level is not Level.SESSION:
        told |= {"template": it.required.subject}
    return {**told, "field": it.required.field}


def _has_of(it: Unmet) -> str:
    if it.found == UNKNOWN:
        return "no verified tools"
    tool = it.required.requirement.tool
    return f"no verified {tool}" if it.found is None else f"{tool} {it.found}"


def _warnings(found: _Candidate, chosen: Saying, *, unchecked: bool) -> Trail:
    deprecated = (found.entry.image.state is ImageState.DEPRECATED) or (
        found.held.status.state is ReleaseState.DEPRECATED
    )
    said = ((deprecated, DEPRECATED), (unchecked, SUPPORT_UNCHECKED))
    return tuple(Step(chosen.level, Outcome.WARNED, chosen.subject, what) for holds, what in said if holds)


def _follow(
    text: str, platform: Platform, catalog: CatalogView, deployment: Deployment, *, support: bool = True
) -> _Candidate | Refusal:
    """From a word to a variant: each check in its order, the first failure is the answer."""
    reference = parse_image(text)
    if isinstance(reference, Malformed):
        return Refusal(Reason.INVALID_REFERENCE, reference.why)
    found = _find(reference, catalog, deployment)
    if isinstance(found, Refusal):
        return found
    entry, held = found
    variant = held.release.variant_for(platform)
    if variant is None or not _names(reference, variant):
        offered = sorted(str(v.platform) for v in held.release.variants if _names(reference, v))
        message = f"{entry.image.name}:{held.release.number} has no variant for {platform}"
        return Refusal(Reason.IMAGE_UNSUPPORTED, message, None, {"platforms": offered, "platform": str(platform)})
    candidate = _Candidate(entry, held, variant)
    checks = _CHECKS if support else tuple(check for check in _CHECKS if check is not _supported)
    refusals = (check(candidate, deployment) for check in checks)
    return next((refusal for refusal in refusals if refusal is not None), candidate)


def _find(
    reference: ImageReference, catalog: CatalogView, deployment: Deployment
) -> tuple[ImageEntry, ReleaseEntry] | Refusal:
    if isinstance(reference, OfRelease):
        owner = catalog.owner_of(reference.release)
        if owner is None:
            return Refusal(Reason.RELEASE_UNKNOWN, f"there is no release {reference.release}")
        entry, number = owner
        return entry, entry.releases[number]
    if isinstance(reference, OfDefault):
        if deployment.default_image is None:
            return Refusal(Reason.NO_DEFAULT_IMAGE, f"{DEFAULT} was asked for and the deployment has no default image")
        reference = OfImage(deployment.default_image, ByChannel(STABLE, said=False))
    found = catalog.image(reference.image)
    if found is None:
        return Refusal(Reason.IMAGE_UNKNOWN, f"there is no image {reference.image}")
    held = _select(found, reference)
    return held if isinstance(held, Refusal) else (found, held)


def _select(entry: ImageEntry, reference: OfImage) -> ReleaseEntry | Refusal:
    name = entry.image.name
    match reference.selector:
        case ByNumber(number):
            held = entry.releases.get(number)
            return held or Refusal(
                Reason.RELEASE_UNKNOWN, f"{name} has no release {number}", None, {"releases": sorted(entry.releases)}
            )
        case ByDigest(digest):
            held = _by_digest(entry, digest)
            return held or Refusal(Reason.RELEASE_UNKNOWN, f"no release of {name} has this digest")
        case ByChannel(channel, said):
            pointer = entry.channels.get(channel)
            if pointer is not None:
                return entry.releases[pointer.number]
            # Without a stable channel a bare name stands for the newest release, so that the true cause is the answer.
            if not said and entry.releases:
                return entry.releases[max(entry.releases)]
            return Refusal(
                Reason.CHANNEL_UNKNOWN, f"{name} has no channel {channel}", None, {"channels": sorted(entry.channels)}
            )


def _by_digest(entry: ImageEntry, digest: str) -> ReleaseEntry | None:
    """The oldest one that has it, so that a later registration of the same bytes moves no reference."""
    numbers = (n for n, held in entry.releases.items() if any(_has(digest, v) for v in held.release.variants))
    number = min(numbers, default=None)
    return None if number is None else entry.releases[number]


def _names(reference: ImageReference, variant: Variant) -> bool:
    """Whether this variant of the release is meant: one platform's manifest digest never stands for another's bytes."""
    match reference:
        case OfImage(_, ByDigest(digest)):
            return _has(digest, variant)
        case _:
            return True


def _has(digest: str, variant: Variant) -> bool:
    return digest in (variant.digest, variant.index_digest)


def _not_retired(found: _Candidate, _: Deployment) -> Refusal | None:
    if found.entry.image.state is ImageState.RETIRED:
        return Refusal(Reason.IMAGE_RETIRED, f"{found.entry.image.name} is retired")
    return None


def _supported(found: _Candidate, deployment: Deployment) -> Refusal | None:
    variant = found.variant
    fits = [p for p in deployment.pools if p.platform == variant.platform and p.provider in variant.providers]
    if fits:
        return None
    pools = {p.name: {"platform": str(p.platform), "provider": p.provider} for p in deployment.pools}
    details = {"pools": pools, "platform": str(variant.platform), "providers": list(variant.providers)}
    return Refusal(Reason.IMAGE_UNSUPPORTED, "no pool of the deployment can run it", None, details)


def _active(found: _Candidate, _: Deployment) -> Refusal | None:
    status = found.held.status
    if status.state not in NOT_RUNNABLE:
        return None
    reason, what = NOT_RUNNABLE[status.state]
    fault = status.fault
    details = {"fault": {"code": fault.reason.value, "message": fault.message}} if fault else {}
    return Refusal(reason, f"{found.entry.image.name}:{found.held.release.number} {what}", None, details)


_CHECKS: tuple[Callable[[_Candidate, Deployment], Refusal | None], ...] = (_not_retired, _supported, _active)
