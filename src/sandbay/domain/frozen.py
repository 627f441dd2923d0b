"""The frozen release: the unchangeable record of the one variant a Session was admitted on.

It is written once, as canonical JSON with its digest. The Session, its placement and every allocation
carry its id and digest; nodes run from it and from nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sandbay.domain.canonical import canonical, sha256
from sandbay.domain.ids import ImageId, ReleaseId
from sandbay.domain.platform import Platform
from sandbay.domain.release import Artifact, ContentKey, content_key
from sandbay.domain.requirement import Tools
from sandbay.domain.trail import DecidedBy, Trail


@dataclass(frozen=True)
class FrozenRelease:
    """The whole identity, who decided, and how."""

    image: ImageId
    image_name: str
    reference: str
    release: ReleaseId
    number: int
    platform: Platform
    artifacts: Mapping[str, Artifact]
    providers: tuple[str, ...]
    digest: str | None
    index_digest: str | None
    source_commit: str | None
    size: int
    generation: int
    decided_by: DecidedBy
    trail: Trail
    tools: Tools = field(default_factory=dict)
    """The verified tools at that moment: name → version."""

    @cached_property
    def content_key(self) -> ContentKey:
        """What a node must hold to run it."""
        return content_key(self.platform, {name: a.value for name, a in self.artifacts.items()})

    @cached_property
    def document(self) -> bytes:
        """Canonical JSON of all fields."""
        return canonical(self)

    @cached_property
    def document_digest(self) -> str:
        """`sha256:…` of the document; what refers to this record carries it."""
        return sha256(self.document)
