"""From a word to a variant of a release: each check in its order, the first failure is the answer.

Whether the tools suffice is asked last, in `blame`: at fault is then whoever requires them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sandbay.domain.catalog import CatalogView, ImageEntry, ImageState, ReleaseEntry
from sandbay.domain.ceiling import Standing, Tier
from sandbay.domain.deployment import Deployment
from sandbay.domain.errors import Refusal
from sandbay.domain.path import DEPLOYMENT, Path
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import (
    DEFAULT,
    STABLE,
    ByChannel,
    ByDigest,
    ByNumber,
    Malformed,
    OfDefault,
    OfImage,
    OfRelease,
    parse_image,
)
from sandbay.domain.release import NOT_RUNNABLE, Variant
from sandbay.domain.requirement import Tools
from sandbay.domain.trail import Policy


@dataclass(frozen=True)
class Ground:
    """What a word is held against: the path with what stands there, the catalog, the deployment's declarations."""

    path: Path
    standing: Standing
    policy: Policy
    platform: Platform
    catalog: CatalogView
    deployment: Deployment

    @property
    def support_known(self) -> bool:
        """Whether there is anything to hold support against, or a Session to be admitted."""
        return bool(self.deployment.pools) or not self.policy.support_may_wait


@dataclass(frozen=True)
class Found:
    """A release and its image."""

    entry: ImageEntry
    held: ReleaseEntry


@dataclass(frozen=True)
class Candidate(Found):
    """A variant that passed the checks so far."""

    variant: Variant

    @property
    def tools(self) -> Tools:
        """Its verified tools."""
        return self.held.tools(self.variant)


def follow(text: str, ground: Ground) -> Candidate | Refusal:
    """Find the release and hold its variant against every check."""
    found = find(text, ground)
    if isinstance(found, Refusal):
        return found
    variant = found.held.release.variant_for(ground.platform)
    if variant is None or not _names(text, variant):
        offered = sorted(str(v.platform) for v in found.held.release.variants if _names(text, v))
        message = f"{found.entry.image.name}:{found.held.release.number} has no variant for {ground.platform}"
        facts = {"platforms": offered, "platform": str(ground.platform)}
        return Refusal(Reason.IMAGE_UNSUPPORTED, message, None, facts)
    candidate = Candidate(found.entry, found.held, variant)
    refusals = (check(candidate, ground) for check in _CHECKS)
    return next((refusal for refusal in refusals if refusal is not None), candidate)


def find(text: str, ground: Ground) -> Found | Refusal:
    """The release that a text means, whatever its state. Costs one look at the catalog."""
    reference = parse_image(text)
    if isinstance(reference, Malformed):
        return Refusal(Reason.INVALID_REFERENCE, reference.why)
    if isinstance(reference, OfRelease):
        owner = ground.catalog.owner_of(reference.release)
        if owner is None:
            return Refusal(Reason.RELEASE_UNKNOWN, f"there is no release {reference.release}")
        entry, number = owner
        return Found(entry, entry.releases[number])
    if isinstance(reference, OfDefault):
        if ground.deployment.default_image is None:
            return Refusal(Reason.NO_DEFAULT_IMAGE, f"{DEFAULT} was asked for and the deployment has no default image")
        reference = OfImage(ground.deployment.default_image, ByChannel(STABLE, said=False))
    found = ground.catalog.image(reference.image)
    if found is None:
        return Refusal(Reason.IMAGE_UNKNOWN, f"there is no image {reference.image}")
    held = _select(found, reference)
    return held if isinstance(held, Refusal) else Found(found, held)


def is_bare_name(text: str) -> bool:
    """Whether the text names an image and leaves open which of its releases."""
    match parse_image(text):
        case OfImage(_, ByChannel(_, said)):
            return not said
        case _:
            return False


def means(text: str, entry: ImageEntry, ground: Ground) -> bool:
    """Whether the text speaks of this image, be it of a release that nobody has registered."""
    match parse_image(text):
        case OfImage(name, _):
            return name in (entry.image.name, entry.image.id)
        case OfRelease(release):
            return release in (held.release.id for held in entry.releases.values())
        case OfDefault():
            return entry.image.id == ground.deployment.default_image
        case Malformed():
            return False


def _select(entry: ImageEntry, reference: OfImage) -> ReleaseEntry | Refusal:
    name = entry.image.name
    match reference.selector:
        case ByNumber(number):
            held = entry.releases.get(number)
            return held or Refusal(
                Reason.RELEASE_UNKNOWN, f"{name} has no release {number}", None, {"releases": sorted(entry.releases)}
            )
        case ByDigest(digest):
            held = entry.release_with(digest)
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


def _names(text: str, variant: Variant) -> bool:
    """Whether this variant of the release is meant: one platform's manifest digest never stands for another's bytes."""
    match parse_image(text):
        case OfImage(_, ByDigest(digest)):
            return variant.has(digest)
        case _:
            return True


def _not_retired(found: Candidate, _: Ground) -> Refusal | None:
    if found.entry.image.state is ImageState.RETIRED:
        return Refusal(Reason.IMAGE_RETIRED, f"{found.entry.image.name} is retired")
    return None


def _allowed(found: Candidate, ground: Ground) -> Refusal | None:
    """Every list along the path has to hold the image, whoever chose it; the deployment's always holds the default."""
    image = found.entry.image
    for subject in ground.path.subjects if ground.policy.ceilings else ():
        listed = ground.standing.allowed.get(subject)
        if listed is None or listed.admits((image.name, image.id), image.labels):
            continue
        if subject == DEPLOYMENT and image.id == ground.deployment.default_image:
            continue
        where = {"level": subject.level.value, "subject": ground.path.told(subject)}
        message = f"the allow-list of {ground.path.called(subject)} does not hold {image.name}"
        return Refusal(Reason.IMAGE_NOT_ALLOWED, message, None, {"image": image.name, "allow_list": where})
    return None


def _granted(found: Candidate, ground: Ground) -> Refusal | None:
    image = found.entry.image
    if image.tier is Tier.STANDARD or not ground.policy.ceilings:
        return None
    if any(image.id in ground.standing.grants.get(subject, ()) for subject in ground.path.subjects):
        return None
    message = f"{image.name} is restricted, and neither the project nor a scope on the path has a grant"
    return Refusal(Reason.IMAGE_NOT_GRANTED, message, None, {"image": image.name})


def _supported(found: Candidate, ground: Ground) -> Refusal | None:
    variant, pools = found.variant, ground.deployment.pools
    fits = [p for p in pools if p.platform == variant.platform and p.provider in variant.providers]
    if fits or not ground.support_known:
        return None
    offered = {p.name: {"platform": str(p.platform), "provider": p.provider} for p in pools}
    details = {"pools": offered, "platform": str(variant.platform), "providers": list(variant.providers)}
    return Refusal(Reason.IMAGE_UNSUPPORTED, "no pool of the deployment can run it", None, details)


def _active(found: Candidate, _: Ground) -> Refusal | None:
    status = found.held.status
    if status.state not in NOT_RUNNABLE:
        return None
    reason, what = NOT_RUNNABLE[status.state]
    fault = status.fault
    details = {"fault": {"code": fault.reason.value, "message": fault.message}} if fault else {}
    return Refusal(reason, f"{found.entry.image.name}:{found.held.release.number} {what}", None, details)


_CHECKS: tuple[Callable[[Candidate, Ground], Refusal | None], ...] = (
    *(_not_retired, _allowed, _granted),
    *(_supported, _active),
)
