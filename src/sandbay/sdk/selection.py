"""Who chooses an image: scopes, bindings, and the ceilings over them.

A subject is `deployment`, `project:NAME`, `scope:KIND:REF` or `agent:PROJECT:NAME`.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.transport import segment
from sandbay.sdk.wire import Resource, each, moment, take

SANDBOX = "/core/v1/sandbox"
SCOPES, BINDINGS, GRANTS = f"{SANDBOX}/scopes", f"{SANDBOX}/bindings", f"{SANDBOX}/grants"
ALLOW_LISTS, OVERRIDES = f"{SANDBOX}/allow-lists", f"{SANDBOX}/overrides"


@dataclass(frozen=True, kw_only=True)
class Scope(Resource):
    """Where in an organisation Sessions act. `project` is an id, None when every project may name it."""

    name: str
    revision: int
    parent: str | None = None
    project: str | None = None
    created_at: dt.datetime | None = None

    @classmethod
    def of(cls, data: Any) -> "Scope":
        """From the scope resource."""
        return take(cls, data, created_at=moment)


@dataclass(frozen=True, kw_only=True)
class Written(Resource):
    """What stands under a subject: who wrote it, when and why."""

    subject: str
    author: str
    revision: int
    at: dt.datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Binding(Written):
    """A subject uses an image, as a preference (`prefer`) or enforced (`enforce`).

    `upgrade_available`: the newer release, as `web:9`, of an image that it is pinned to an older one of.
    `changes`, of a write: whose image changed by it, `{kind, name, project, before, after}` each.
    """

    mode: str
    runtime_image_id: str
    upgrade_available: str | None = None
    changes: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, data: Any) -> "Binding":
        """From the binding resource."""
        return take(cls, data, at=moment, changes=each(dict))


@dataclass(frozen=True, kw_only=True)
class AllowList(Written):
    """What may be chosen below a subject: everything, or images by name and by labels."""

    everything: bool = False
    images: tuple[str, ...] = ()
    labels: tuple[Mapping[str, str], ...] = ()

    @classmethod
    def of(cls, data: Any) -> "AllowList":
        """From the allow-list resource."""
        return take(cls, data, at=moment, images=each(str), labels=each(dict))


@dataclass(frozen=True, kw_only=True)
class Override(Written):
    """Whether Session requests below a subject may name an image: `allow` or `deny`."""

    override: str

    @classmethod
    def of(cls, data: Any) -> "Override":
        """From the override resource."""
        return take(cls, data, at=moment)


@dataclass(frozen=True, kw_only=True)
class Grant(Written):
    """A subject may use a restricted image."""

    image: str

    @classmethod
    def of(cls, data: Any) -> "Grant":
        """From the grant resource."""
        return take(cls, data, at=moment)


def own_binding(subject: str) -> str:
    """Where the binding of the project's own `scope:KIND:REF` or `agent:NAME` is."""
    level, _, name = subject.partition(":")
    return f"/v1/{level}s/{segment(name)}/binding"
