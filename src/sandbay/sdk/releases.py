"""Releases as the interface shows them: variants, verified tools, and what was promised of them."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbay.sdk.resources import Reason
from sandbay.sdk.wire import Resource, each, moment, take


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: its blob's digest and `size` in bytes, and the digest of the tar inside."""

    digest: str
    diff_id: str
    size: int
    media_type: str

    @classmethod
    def of(cls, data: Any) -> "Layer":
        """From one item of a variant's `layers`."""
        return take(cls, data)


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of the image's making did, and which of `layers` it left; None is none. `size` in bytes."""

    created_by: str
    layer: int | None = None
    size: int | None = None

    @classmethod
    def of(cls, data: Any) -> "Step":
        """From one item of a variant's `history`."""
        return take(cls, data)


@dataclass(frozen=True, kw_only=True)
class Variant(Resource):
    """A release on one platform. `size` in bytes; `history` is empty where the image tells none."""

    platform: str
    digest: str | None = None
    index_digest: str | None = None
    image_id: str | None = None
    source: str | None = None
    providers: tuple[str, ...] = ()
    size: int | None = None
    layers: tuple[Layer, ...] = ()
    history: tuple[Step, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    report: Mapping[str, Any] | None = None
    """What the newest check saw, as it came."""

    @classmethod
    def of(cls, data: Any) -> "Variant":
        """From one item of a release's `variants`."""
        return take(cls, data, providers=each(str), layers=each(Layer.of), history=each(Step.of), tools=verified)


def verified(tools: Any) -> Mapping[str, str]:
    """Tool → version; nothing where the answer is `unverified`."""
    return tools if isinstance(tools, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Contract:
    """What a release promises: tool → command. `state`: unverified, due, kept or violated."""

    state: str
    tools: Mapping[str, str] = field(default_factory=dict)
    checks: int = 0
    trouble: Reason | None = None

    @classmethod
    def of(cls, data: Any) -> "Contract":
        """From a release's `contract`."""
        return take(cls, data, trouble=Reason.of)


@dataclass(frozen=True, kw_only=True)
class Release(Resource):
    """One immutable release of an image. `state` is pending until a node proved it, then active.

    `tools`: verified ones, name → version; empty when none was verified.
    """

    id: str
    number: int
    state: str
    image: str | None = None
    fault: Reason | None = None
    source_commit: str | None = None
    created_at: dt.datetime | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    contract: Contract | None = None
    variants: tuple[Variant, ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Release":
        """From the release resource."""
        return take(
            cls,
            data,
            fault=Reason.of,
            created_at=moment,
            tools=verified,
            contract=Contract.of,
            variants=each(Variant.of),
        )
