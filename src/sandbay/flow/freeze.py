"""Step 2. Write down what was selected, whole: from here on nothing resolves again."""

from sandbay.domain.catalog import Image
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.release import Release, Variant
from sandbay.domain.requirement import Tools
from sandbay.domain.trail import DecidedBy, Trail


def freeze(
    image: Image,
    release: Release,
    variant: Variant,
    *,
    reference: str,
    decided_by: DecidedBy,
    trail: Trail,
    generation: int,
    tools: Tools,
) -> FrozenRelease:
    """The unchangeable record. The parts are those of one `Selected`; `generation` is the deployment's."""
    return FrozenRelease(
        image=image.id,
        image_name=image.name,
        reference=reference,
        release=release.id,
        number=release.number,
        platform=variant.platform,
        artifacts=dict(variant.artifacts),
        providers=variant.providers,
        digest=variant.digest,
        index_digest=variant.index_digest,
        source_commit=release.source_commit,
        size=variant.size,
        generation=generation,
        decided_by=decided_by,
        trail=trail,
        tools=dict(tools),
    )
