"""What an installation tells of its things, as the HTTP interface names them. Times are aware, in UTC."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sandbay.sdk.wire import Resource, each, moment, take


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something is. `bytes_total` is None while nobody knows it yet; `phase` is one or two words.

    In the phase `setup`: `step` of `steps`, what it is `doing`, and the end of what it has printed.
    """

    phase: str
    bytes_done: int = 0
    bytes_total: int | None = None
    step: int | None = None
    steps: int | None = None
    doing: str | None = None
    output: str | None = None

    @classmethod
    def of(cls, data: Any) -> "Progress":
        """From the API's `progress`."""
        progress = take(cls, data)
        return progress if progress.bytes_done is not None else replace(progress, bytes_done=0)


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something failed."""

    code: str
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any) -> "Reason":
        """From `{code, message, details}`."""
        return take(cls, data)


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """Whose word chose the image: the level (session, project, deployment, …) and the subject on it."""

    level: str
    subject: str | None = None

    @classmethod
    def of(cls, data: Any) -> "DecidedBy":
        """From `{level, subject}`."""
        return take(cls, data)


@dataclass(frozen=True, slots=True)
class Step:
    """What one level said on the way to the image, and what became of it."""

    level: str
    outcome: str
    subject: str | None = None
    said: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, data: Any) -> "Step":
        """From one line of `trail`."""
        return take(cls, data)


@dataclass(frozen=True, slots=True)
class FrozenImage:
    """The one image a Session is admitted on, for its whole life."""

    id: str
    name: str
    reference: str
    release: int
    release_id: str
    digest: str | None
    platform: str
    decided_by: DecidedBy
    index_digest: str | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    """Verified tools: name → version."""

    @classmethod
    def of(cls, data: Any) -> "FrozenImage":
        """From a Session's `image`."""
        return take(cls, data, decided_by=DecidedBy.of)


@dataclass(frozen=True, slots=True)
class Foretold:
    """The end of a Session, said ahead of it: `because` is `idle` or `life_over`."""

    at: dt.datetime
    because: str

    @classmethod
    def of(cls, data: Any) -> "Foretold | None":
        """From `{at, because}`, or None."""
        return None if data is None else take(cls, data, at=moment)


@dataclass(frozen=True, kw_only=True)
class Session(Resource):
    """One sandbox, from admission to its end. `node`, `runtime` and `host_pid` only for administrators."""

    id: str
    status: str
    image: FrozenImage
    trail: tuple[Step, ...] = ()
    created_at: dt.datetime | None = None
    ended_at: dt.datetime | None = None
    waiting_for: str | None = None
    wait_until: dt.datetime | None = None
    progress: Progress | None = None
    network: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    reason: Reason | None = None
    ended_because: str | None = None
    idle_timeout: int | None = None
    max_life: int | None = None
    foretold: Foretold | None = None
    node: str | None = None
    runtime: str | None = None
    host_pid: int | None = None

    @classmethod
    def of(cls, data: Any) -> "Session":
        """From the session resource."""
        return take(
            cls,
            data,
            image=FrozenImage.of,
            trail=each(Step.of),
            created_at=moment,
            ended_at=moment,
            wait_until=moment,
            progress=Progress.of,
            reason=Reason.of,
            foretold=Foretold.of,
        )


@dataclass(frozen=True, slots=True)
class Channel:
    """Where a channel points; `previous` is the release before, where that was asked for."""

    release: int
    revision: int | None = None
    previous: int | None = None

    @classmethod
    def of(cls, data: Any) -> "Channel":
        """From `{release, revision}`."""
        return take(cls, data)


def _channels(data: Any) -> dict[str, Channel]:
    return {name: Channel.of(value) for name, value in data.items()} if isinstance(data, dict) else {}


@dataclass(frozen=True, kw_only=True)
class Image(Resource):
    """A named entry of the catalog, as administrators see it. `releases` are numbers."""

    id: str
    name: str
    state: str
    revision: int
    description: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)
    releases: tuple[int, ...] = ()
    default: bool = False
    tier: str = "standard"
    created_at: dt.datetime | None = None

    @classmethod
    def of(cls, data: Any) -> "Image":
        """From the image resource."""
        return take(cls, data, channels=_channels, releases=each(int), created_at=moment)


@dataclass(frozen=True, kw_only=True)
class UsableImage(Resource):
    """An image that a project may use."""

    name: str
    state: str
    description: str | None = None
    channels: Any = None
    tools: Any = None
    """Channel → verified tools (name → version), or `unverified`."""
    platforms: tuple[str, ...] = ()
    default: bool = False

    @classmethod
    def of(cls, data: Any) -> "UsableImage":
        """From one item of `/v1/images`."""
        return take(cls, data, platforms=each(str))


@dataclass(frozen=True, kw_only=True)
class Readiness(Resource):
    """What one node says of one image's release."""

    node: str
    state: str
    release: int
    attempt: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    fault: Reason | None = None
    retry_at: dt.datetime | None = None
    pinned: bool = False

    @classmethod
    def of(cls, data: Any) -> "Readiness":
        """From one item of `…/readiness`."""
        return take(cls, data, fault=Reason.of, retry_at=moment)


@dataclass(frozen=True, kw_only=True)
class Evicted(Resource):
    """What an eviction did: `evicted` items `{node, release}`, `kept` items `{node, why}`."""

    evicted: tuple[Mapping[str, Any], ...] = ()
    kept: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Evicted":
        """From the answer to `…/evict`."""
        return take(cls, data, evicted=each(dict), kept=each(dict))


@dataclass(frozen=True, kw_only=True)
class Deployment(Resource):
    """Where and with what default Sessions run. `pools` as JSON objects, in order of preference."""

    generation: int
    default_platform: str
    default_image: str | None = None
    pools: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Deployment":
        """From the deployment resource."""
        return take(cls, data, pools=each(dict))


@dataclass(frozen=True, kw_only=True)
class Node(Resource):
    """A process that runs sandboxes on a host.

    `slots` may run at once, `active` do; `warm` ones take Sessions; `networks` are the modes that it enforces.
    """

    id: str
    name: str
    provider: str
    runtime: str
    platform: str
    slots: int = 0
    active: int = 0
    online: bool = False
    warm: bool = False
    last_seen: dt.datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    networks: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Node":
        """From one item of `sandbox/nodes`."""
        return take(cls, data, last_seen=moment, networks=each(str))


@dataclass(frozen=True, kw_only=True)
class Project(Resource):
    """A tenant. `runtime_image_id` is its standing preference; `scope_required`: each Session names its scope."""

    id: str
    name: str
    runtime_image_id: str | None = None
    revision: int | None = None
    scope_required: bool = False

    @classmethod
    def of(cls, data: Any) -> "Project":
        """From the project resource."""
        return take(cls, data)


@dataclass(frozen=True, kw_only=True)
class Key(Resource):
    """A key of a project, held to a `scope` with all below it and to `agents` where they are not None.

    `secret` only in the answer that made it; `repr` does not show it.
    """

    id: str
    name: str | None = None
    principal: str | None = None
    created_at: dt.datetime | None = None
    revoked_at: dt.datetime | None = None
    scope: str | None = None
    agents: tuple[str, ...] | None = None
    secret: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, data: Any) -> "Key":
        """From the key resource."""
        return take(cls, data, created_at=moment, revoked_at=moment, agents=each(str))


@dataclass(frozen=True, slots=True)
class FileEntry:
    """What is at a path of a sandbox: kind is file, directory, symlink or other; size in bytes, mtime in seconds."""

    name: str
    kind: str
    size: int
    mode: int
    mtime: float = 0.0
    uid: int = 0
    gid: int = 0
    target: str | None = None

    @classmethod
    def of(cls, data: Any) -> "FileEntry":
        """From one item of a folder's list, or the answer to `stat`."""
        return take(cls, data)
