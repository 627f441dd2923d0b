"""Releases and their variants: complete, immutable runtime identities.

A variant is what one Session runs: one platform, the artifacts that identify its bytes, and what those
bytes say of themselves. `content_key` names the content; everything that is keyed by bytes uses it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NewType

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.ids import ImageId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason

ContentKey = NewType("ContentKey", str)
"""`sha256:…` over {platform, artifacts}."""

MANIFEST_DIGEST = "image_manifest_digest"
IMAGE_ID = "image_id"


class Known(StrEnum):
    """How an artifact's value is known."""

    COMPUTED = "computed"
    REPORTED = "reported"
    STATED = "stated"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One declared name's value, e.g. `image_manifest_digest` → `sha256:…`."""

    value: str
    known: Known


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: the blob's digest and size in bytes, and the digest of the tar inside it."""

    digest: str
    diff_id: str
    size: int
    media_type: str

    @property
    def format(self) -> str:
        """How the tar is packed, in the words of declarations: `gzip`, `zstd` or `plain`."""
        return next((packed for packed in ("gzip", "zstd") if self.media_type.endswith(packed)), "plain")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an image's making: what its builder wrote of it, and which layer it left, from 0, or None."""

    created_by: str
    layer: int | None


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What the image says of running it. None means that it says nothing."""

    entrypoint: tuple[str, ...] | None = None
    cmd: tuple[str, ...] | None = None
    env: tuple[str, ...] = ()
    user: str = ""
    workdir: str = ""
    stop_signal: str = ""


@dataclass(frozen=True)
class Variant:
    """One platform's identity within a release. Written once.

    `source` is where a registry had it, by digest. `history` is empty where the image tells none that fits its layers.
    """

    platform: Platform
    artifacts: Mapping[str, Artifact]
    providers: tuple[str, ...]
    layers: tuple[Layer, ...] = ()
    config: ImageConfig = field(default_factory=ImageConfig)
    manifest_size: int = 0
    config_size: int = 0
    index_digest: str | None = None
    source: str | None = None
    history: tuple[Step, ...] = ()

    @cached_property
    def content_key(self) -> ContentKey:
        """Names the bytes; provenance stays outside it."""
        return content_key(self.platform, {name: a.value for name, a in self.artifacts.items()})

    @property
    def digest(self) -> str | None:
        """The manifest digest, or None where a provider has none."""
        artifact = self.artifacts.get(MANIFEST_DIGEST)
        return artifact.value if artifact else None

    def has(self, digest: str) -> bool:
        """Whether it is the manifest's digest, or the one of the index that the manifest came with."""
        return digest in (self.digest, self.index_digest)

    @property
    def blobs(self) -> Sequence[tuple[str, int]]:
        """Digest and size of all that the installation's store has of it; nothing where there are no bytes of ours."""
        manifest, config = (self.artifacts.get(name) for name in (MANIFEST_DIGEST, IMAGE_ID))
        if manifest is None or config is None or not self.manifest_size:
            return []
        documents = [(manifest.value, self.manifest_size), (config.value, self.config_size)]
        return [*documents, *((layer.digest, layer.size) for layer in self.layers)]

    @property
    def size(self) -> int:
        """Bytes to fetch: manifest, config and each distinct layer once."""
        return self.manifest_size + self.config_size + sum({x.digest: x.size for x in self.layers}.values())


def content_key(platform: Platform, artifacts: Mapping[str, str]) -> ContentKey:
    """SHA-256 over the canonical JSON of {platform, artifacts}."""
    return ContentKey(sha256(canonical({"platform": str(platform), "artifacts": dict(artifacts)})))


class ReleaseState(StrEnum):
    """pending → active → deprecated → retired, or pending → rejected."""

    PENDING = "pending"
    ACTIVE = "active"
    DEPRECATED = "deprecated"
    RETIRED = "retired"
    REJECTED = "rejected"


RELEASE_MOVES: Mapping[ReleaseState, frozenset[ReleaseState]] = {
    ReleaseState.PENDING: frozenset({ReleaseState.ACTIVE, ReleaseState.REJECTED}),
    ReleaseState.ACTIVE: frozenset({ReleaseState.DEPRECATED, ReleaseState.RETIRED}),
    ReleaseState.DEPRECATED: frozenset({ReleaseState.ACTIVE, ReleaseState.RETIRED}),
    ReleaseState.RETIRED: frozenset({ReleaseState.ACTIVE}),
    ReleaseState.REJECTED: frozenset(),
}
"""Legal moves. A rejection is for ever: it speaks of bytes, and bytes do not change.

Only one for a violated contract speaks of tools, too: `flow.prove` opens it again when a check is asked for.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a release is rejected or a node failed: a code and the facts."""

    reason: Reason
    message: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Release:
    """Append-only. Its state stands beside it, never in it."""

    id: ReleaseId
    image: ImageId
    number: int
    variants: tuple[Variant, ...]
    source_commit: str | None = None

    def variant_for(self, platform: Platform) -> Variant | None:
        """The variant of exactly this platform."""
        return next((v for v in self.variants if v.platform == platform), None)


@dataclass(frozen=True, slots=True)
class ReleaseStatus:
    """Where a release stands; `fault` only when rejected, `promote` the channel that its first proof moves."""

    state: ReleaseState = ReleaseState.PENDING
    fault: Fault | None = None
    promote: str | None = None
    revision: int = 1


NOT_RUNNABLE: Mapping[ReleaseState, tuple[Reason, str]] = {
    ReleaseState.PENDING: (Reason.RELEASE_PENDING, "has not been proved on a node yet"),
    ReleaseState.REJECTED: (Reason.RELEASE_REJECTED, "was rejected: its bytes are at fault"),
    ReleaseState.RETIRED: (Reason.RELEASE_RETIRED, "is retired"),
}
"""The states in which a release takes no Session and no channel may point at it: the reason, and how it is said."""

REJECTING = frozenset(
    {
        Reason.DIFF_ID_MISMATCH,
        Reason.MALFORMED_LAYER,
        Reason.MALFORMED_MANIFEST,
        Reason.MALFORMED_CONFIG,
        Reason.NOT_AN_IMAGE,
        Reason.PLATFORM_MISMATCH,
        Reason.UNSUPPORTED_MEDIA_TYPE,
        Reason.UNSAFE_LAYER_PATH,
        Reason.UNSAFE_LINK,
        Reason.UNSAFE_WHITEOUT,
        Reason.UNSAFE_DEVICE,
        Reason.LIMIT_EXCEEDED,
    }
)
"""Faults of verified bytes: true everywhere and for ever. Any other fault is one node's, for now."""
