"""What an installation tells of publishes."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from sandbay.sdk.resources import Reason
from sandbay.sdk.wire import Resource, each, moment, take

FINAL = frozenset({"done", "failed", "cancelled"})

LogCallback = Callable[[str], None]
"""Takes what a build says, in pieces of text."""


class Publishing(TypedDict, total=False):
    """What is published of a folder: a plain Dockerfile in it under a name, or what its image.toml says."""

    name: str | None
    dockerfile: str | None
    rebuild: bool


@dataclass(frozen=True, slots=True)
class Base:
    """What a FROM means: the catalog's release as NAME:NUMBER, or a digest of elsewhere."""

    text: str
    release: str | None
    digest: str | None
    layers: int = 0

    @classmethod
    def of(cls, data: Any) -> "Base":
        """From `{text, release, digest, layers}`."""
        return take(cls, data)


@dataclass(frozen=True, kw_only=True)
class Publish(Resource):
    """One publish. `built` is False where the same inputs had given `release` before."""

    id: str
    image: str
    phase: str
    created_at: dt.datetime
    ended_at: dt.datetime | None = None
    release: str | None = None
    built: bool | None = None
    source_commit: str | None = None
    promote: str | None = None
    bases: tuple[Base, ...] = ()
    fault: Reason | None = None

    @classmethod
    def of(cls, data: Any) -> "Publish":
        """From the interface's JSON."""
        return take(cls, data, created_at=moment, ended_at=moment, bases=each(Base.of), fault=Reason.of)

    @property
    def ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.phase in FINAL


@dataclass(frozen=True, kw_only=True)
class PublishPlan(Resource):
    """What publishing would do: `action` is build, reuse or, when a registry has to be asked first, unknown."""

    image: str
    action: str
    why: str
    release: str | None = None
    bases: tuple[Base, ...] = ()
    shared_layers: tuple[Mapping[str, Any], ...] = ()
    steps: tuple[str, ...] = ()
    files: int = 0
    tools: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any) -> "PublishPlan":
        """From the interface's JSON."""
        return take(cls, data, bases=each(Base.of), shared_layers=each(dict), steps=each(str))
