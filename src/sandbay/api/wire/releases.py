"""Releases with their variants, and what nodes hold of them."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from sandbay.api.wire.base import NO_NUL, Failure, In, Line, Listing, Out, PlatformText, Reference, failure_of
from sandbay.api.wire.contracts import (
    ContractOut,
    ReportOut,
    ToolCommands,
    ToolVersions,
    contract_out,
    report_out,
    versions_out,
)
from sandbay.api.wire.deployment import platform_of
from sandbay.api.wire.images import EvictedOut, EvictionOut, KeptOut
from sandbay.app.holdings import Eviction, Holding
from sandbay.app.register import FromRegistry, FromUpload, Registration, Runtime
from sandbay.app.registries import parse_source
from sandbay.domain.catalog import ImageEntry, ReleaseEntry
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.release import IMAGE_ID, Fault, Known, ReleaseState, Step, Variant
from sandbay.ports.image_source import Copied


class SourceIn(In):
    """Where the bytes come from: an upload or a registry."""

    upload: Line | None = Field(
        default=None, description="The id of an upload: a tar of an OCI layout, or what `docker save` wrote."
    )
    tag: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)] | None = Field(
        default=None, description="Which image of the upload, where there are several."
    )
    registry: Reference | None = Field(
        default=None,
        description="HOST/REPOSITORY[:TAG][@DIGEST] of an OCI registry; a tag becomes its digest now.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.upload is None) == (self.registry is None):
            raise ValueError("give either upload or registry")
        if self.registry is not None and self.tag is not None:
            raise ValueError("a registry's tag is part of its reference")
        return self

    def source(self) -> FromUpload | FromRegistry:
        """As the use case takes it. Refuses with `invalid_reference`."""
        if self.registry is not None:
            return FromRegistry(parse_source(self.registry))
        return FromUpload(self.upload or "", self.tag)


class RuntimeIn(In):
    """An identity in its flat form."""

    source_commit: Line | None = Field(default=None, description="The commit that it was built from.")
    image_id: Line | None = Field(default=None, description="The config's digest.")
    image_manifest_digest: Line | None = Field(default=None, description="The manifest's digest.")
    microsandbox_ref: Line | None = Field(default=None, description="NAME@sha256:… of a microVM's image.")
    runtime_sha256: Line | None = Field(default=None, description="The hash of the runtime that boots it.")
    firmware_sha256: Line | None = Field(default=None, description="The hash of the firmware that boots it.")

    def runtime(self) -> Runtime:
        """As the use case takes it."""
        said = self.model_dump(exclude_none=True, exclude={"source_commit"})
        return Runtime(self.source_commit, said)


class ReleaseIn(In):
    """What to register: a source of bytes, or artifacts that are known without them, or both to be compared."""

    source: SourceIn | None = Field(default=None, description="Where the bytes come from.")
    source_commit: Line | None = Field(default=None, description="The commit that they were built from.")
    artifacts: Annotated[dict[Line, Line], Field(max_length=32)] | None = Field(
        default=None, description="What is known of it, under the names that providers declare."
    )
    runtime: RuntimeIn | None = Field(default=None, description="The same in its flat form.")
    providers: Annotated[list[Line], Field(min_length=1, max_length=32)] | None = Field(
        default=None, description="The kinds of provider that must be able to run it; all that can, when omitted."
    )
    platforms: Annotated[list[PlatformText], Field(min_length=1, max_length=32)] | None = Field(
        default=None, description="The platforms to take; those of the pools, when omitted."
    )
    promote: Line | None = Field(default=None, description="The channel to move here once a node has proved it.")
    tools: ToolCommands | None = Field(
        default=None,
        description="Tool → the command that prints its version. The first proof runs each in a real sandbox; content"
        " that is there already is checked again when it should have other tools than it has.",
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.source is None and not self.artifacts and self.runtime is None:
            raise ValueError("give a source, artifacts or a runtime")
        return self

    def registration(self) -> Registration:
        """As the use case takes it."""
        return Registration(
            source=None if self.source is None else self.source.source(),
            source_commit=self.source_commit,
            platforms=None if self.platforms is None else [platform_of(text) for text in self.platforms],
            providers=self.providers,
            promote=self.promote,
            artifacts=self.artifacts or {},
            runtime=None if self.runtime is None else self.runtime.runtime(),
            tools=self.tools,
        )


class CopiedOut(Out):
    """How far a registration's copying is."""

    bytes_done: int = Field(description="Bytes that are in the installation's store.")
    bytes_total: int = Field(description="Bytes in all.")
    layers: int = Field(description="Layers in all.")


class ReleaseChange(In):
    """The state that a release should have."""

    state: Annotated[ReleaseState, Field(strict=False)] = Field(description="active, deprecated or retired.")


class LayerOut(Out):
    """A layer."""

    digest: str = Field(description="Of the blob.")
    diff_id: str = Field(description="Of the tar inside it.")
    size: int = Field(description="Bytes of the blob.")
    media_type: str = Field(description="How it is packed.")


class StepOut(Out):
    """One step of the image's making, as its builder wrote it down."""

    created_by: str = Field(description="What the step did; at most 300 characters of it.")
    layer: int | None = Field(description="Which of `layers` it left, from 0; null when it left none.")
    size: int | None = Field(description="Bytes of that layer's blob; null when it left none.")


class ConfigOut(Out):
    """What the image says of running it; null where it says nothing."""

    entrypoint: list[str] | None = Field(description="What stands before the arguments.")
    cmd: list[str] | None = Field(description="The default arguments.")
    env: list[str] = Field(description="NAME=value.")
    user: str = Field(description="user[:group].")
    workdir: str = Field(description="Where commands begin.")
    stop_signal: str = Field(description="How it wants to be told to stop.")


class ArtifactOut(Out):
    """One value that identifies the bytes."""

    value: str = Field(description="The value.")
    known: Known = Field(description="How it is known.")


class VariantOut(Out):
    """A release on one platform."""

    platform: str = Field(description="os/architecture[/variant].")
    digest: str | None = Field(description="The manifest's digest.")
    index_digest: str | None = Field(description="The digest of the index that named it.")
    source: str | None = Field(description="Where a registry had it, by digest; null when it came otherwise.")
    image_id: str | None = Field(description="The config's digest.")
    providers: list[str] = Field(description="The kinds of provider that can run it.")
    size: int = Field(description="Bytes to fetch.")
    layers: list[LayerOut] = Field(description="From the bottom.")
    history: list[StepOut] = Field(
        description="How it was made, from the first step; empty where the image tells nothing that fits its layers."
    )
    config: ConfigOut = Field(description="What the image says of running it.")
    artifacts: dict[str, ArtifactOut] = Field(description="Every value that identifies it.")
    tools: ToolVersions = Field(description="Its verified tools: name → version, or `unverified`.")
    report: ReportOut | None = Field(description="What the newest check saw.")


class ReleaseOut(Out):
    """One immutable release of an image."""

    id: str = Field(description="Its id.")
    image: str = Field(description="The image's name.")
    number: int = Field(description="From 1, in the order of registration.")
    state: ReleaseState = Field(description="pending until a node has proved it.")
    fault: Failure | None = Field(description="Why it was rejected.")
    promote: str | None = Field(description="The channel that its first proof moves.")
    source_commit: str | None = Field(description="The commit that it was built from.")
    tools: ToolVersions = Field(description="The verified tools of its first variant that has any, or `unverified`.")
    contract: ContractOut = Field(description="What it promises, and whether it keeps it.")
    variants: list[VariantOut] = Field(description="One for each platform.")


class ReleaseList(Listing[ReleaseOut]):
    """Releases by number."""


class ReadinessOut(Out):
    """What one node says of one variant."""

    node: str = Field(description="The node's name.")
    node_id: str = Field(description="The node's id.")
    release: int = Field(description="The release's number.")
    platform: str = Field(description="The variant's platform.")
    state: ReadinessState = Field(description="Only `ready` may run anything.")
    attempt: int = Field(description="How many times it was prepared.")
    bytes_done: int = Field(description="Bytes prepared.")
    bytes_total: int = Field(description="Bytes in all; 0 while unknown.")
    fault: Failure | None = Field(description="Why it failed.")
    retry_at: datetime | None = Field(description="When the node tries again.")
    pinned: bool = Field(description="Whether the node may not drop it.")


class MatrixOut(ReadinessOut):
    """What one node says of one variant of one image."""

    image: str = Field(description="The image's name.")


class MatrixList(Listing[MatrixOut]):
    """By image, release and node."""


class ReadinessList(Listing[ReadinessOut]):
    """By release and node."""


def _config(variant: Variant) -> ConfigOut:
    config = variant.config
    return ConfigOut(
        entrypoint=None if config.entrypoint is None else list(config.entrypoint),
        cmd=None if config.cmd is None else list(config.cmd),
        env=list(config.env),
        user=config.user,
        workdir=config.workdir,
        stop_signal=config.stop_signal,
    )


def _step(variant: Variant, step: Step) -> StepOut:
    size = None if step.layer is None else variant.layers[step.layer].size
    return StepOut(created_by=step.created_by, layer=step.layer, size=size)


def _variant(held: ReleaseEntry, variant: Variant) -> VariantOut:
    checked = held.checked.get(variant.content_key)
    image_id = variant.artifacts.get(IMAGE_ID)
    return VariantOut(
        platform=str(variant.platform),
        digest=variant.digest,
        index_digest=variant.index_digest,
        source=variant.source,
        image_id=image_id.value if image_id else None,
        providers=list(variant.providers),
        size=variant.size,
        layers=[
            LayerOut(digest=x.digest, diff_id=x.diff_id, size=x.size, media_type=x.media_type) for x in variant.layers
        ],
        history=[_step(variant, step) for step in variant.history],
        config=_config(variant),
        artifacts={name: ArtifactOut(value=a.value, known=a.known) for name, a in variant.artifacts.items()},
        tools=versions_out(held.tools(variant)),
        report=None if checked is None else report_out(checked),
    )


def copied_out(copied: Copied) -> CopiedOut:
    """From the port."""
    return CopiedOut(bytes_done=copied.bytes_done, bytes_total=copied.bytes_total, layers=copied.layers)


def release_out(entry: ImageEntry, held: ReleaseEntry, trouble: Fault | None) -> ReleaseOut:
    """From the domain; `trouble` is why the last try of a check that is due saw nothing."""
    tools = next((found for v in held.release.variants if (found := held.tools(v))), {})
    return ReleaseOut(
        id=held.release.id,
        image=entry.image.name,
        number=held.release.number,
        state=held.status.state,
        fault=failure_of(held.status.fault),
        promote=held.status.promote,
        source_commit=held.release.source_commit,
        tools=versions_out(tools),
        contract=contract_out(held, trouble),
        variants=[_variant(held, variant) for variant in held.release.variants],
    )


def readiness_out(entry: ImageEntry, holding: Holding) -> ReadinessOut:
    """From the use case."""
    readiness = holding.readiness
    variants = entry.releases[holding.number].release.variants
    return ReadinessOut(
        node=holding.node.name,
        node_id=holding.node.id,
        release=holding.number,
        platform=next(str(v.platform) for v in variants if v.content_key == holding.key),
        state=readiness.state,
        attempt=readiness.attempt,
        bytes_done=readiness.bytes_done,
        bytes_total=readiness.bytes_total,
        fault=failure_of(readiness.fault),
        retry_at=readiness.retry_at,
        pinned=holding.pinned,
    )


def matrix_out(entry: ImageEntry, holding: Holding) -> MatrixOut:
    """From the use case."""
    return MatrixOut(image=entry.image.name, **dict(readiness_out(entry, holding)))


def eviction_out(evictions: list[Eviction]) -> EvictionOut:
    """From the use case."""
    return EvictionOut(
        evicted=[
            EvictedOut(node=it.holding.node.name, release=it.holding.number) for it in evictions if it.kept is None
        ],
        kept=[
            KeptOut(node=it.holding.node.name, release=it.holding.number, why=it.kept)
            for it in evictions
            if it.kept is not None
        ],
    )
