# Made by `./dev sdk` from _async/admin.py, which is the one to edit.
"""An installation as its administrators see it."""

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from sandbay.sdk import context
from sandbay.sdk._sync.catalog import Images
from sandbay.sdk._sync.events import follow
from sandbay.sdk._sync.publishes import Publishes
from sandbay.sdk._sync.registries import Registries
from sandbay.sdk._sync.secrets import Secrets
from sandbay.sdk._sync.selection import AllowLists, Bindings, Grants, Overrides, Scopes
from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.account import SessionAccount
from sandbay.sdk.client import said
from sandbay.sdk.disk import NodeDisk
from sandbay.sdk.events import Event
from sandbay.sdk.resources import Deployment, Key, Node, Project, Session
from sandbay.sdk.transport import gone, segment

_DEPLOYMENT = "/core/v1/sandbox/deployment"
_PROJECTS = "/core/v1/projects"
_EXPORTED_WITHIN = 300.0


class Deployments:
    """The one deployment of the installation."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self) -> Deployment:
        """As it is now."""
        return Deployment.of(self._transport.send(Call("GET", _DEPLOYMENT)))

    def put(
        self,
        *,
        expected_generation: int,
        default_image: str | None,
        default_platform: str,
        pools: Sequence[Mapping[str, Any]],
    ) -> Deployment:
        """Replace it whole. Raises `StateError` (generation_stale, in_use), `UnknownReferenceError`."""
        body = {
            "expected_generation": expected_generation,
            "default_image": default_image,
            "default_platform": default_platform,
            "pools": list(pools),
        }
        return Deployment.of(self._transport.send(Call("PUT", _DEPLOYMENT, json=body)))


class Nodes:
    """The installation's nodes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Node]:
        """All nodes, those that are away included."""
        return [Node.of(item) for item in self._transport.pages("/core/v1/sandbox/nodes")]


class Projects:
    """Projects and their keys."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Project]:
        """All projects."""
        return [Project.of(item) for item in self._transport.pages(_PROJECTS)]

    def create(self, name: str) -> Project:
        """A new project. Raises `StateError` (name_taken)."""
        return Project.of(self._transport.send(Call("POST", _PROJECTS, json={"name": name})))

    def secrets(self, project: str) -> Secrets:
        """The secrets of a project."""
        return Secrets(self._transport, f"{_PROJECTS}/{segment(project)}/secrets")

    def keys(self, project: str) -> Sequence[Key]:
        """The keys of a project, without their secrets."""
        return [Key.of(item) for item in self._transport.pages(f"{_PROJECTS}/{segment(project)}/keys")]

    def change(
        self, project: str, *, scope_required: bool | None = None, expected_revision: int | None = None
    ) -> Project:
        """Change what is given. Raises `StateError` (revision_stale)."""
        body = said({"scope_required": scope_required, "expected_revision": expected_revision})
        return Project.of(self._transport.send(Call("PATCH", f"{_PROJECTS}/{segment(project)}", json=body)))

    def create_key(
        self,
        project: str,
        name: str,
        *,
        principal: str | None = None,
        scope: str | None = None,
        agents: Sequence[str] | None = None,
    ) -> Key:
        """A new key; its `secret` is shown this once. `scope` and `agents`: what it is held to, for good."""
        held = {"scope": scope, "agents": None if agents is None else [*agents]}
        body = said({"name": name, "principal": principal, **held})
        return Key.of(self._transport.send(Call("POST", f"{_PROJECTS}/{segment(project)}/keys", json=body)))

    def revoke_key(self, project: str, key: str) -> None:
        """End a key at once."""
        self._transport.send(Call("DELETE", f"{_PROJECTS}/{segment(project)}/keys/{segment(key)}"))

    def sessions(self, project: str) -> Sequence[Session]:
        """The Sessions of a project."""
        return [Session.of(item) for item in self._transport.pages(f"{_PROJECTS}/{segment(project)}/sessions")]


class AdminClient:
    """A connection with an administrator key; where both come from is as with `Client`."""

    def __init__(
        self, url: str | None = None, admin_key: str | None = None, *, transport: Transport | None = None
    ) -> None:
        """`transport` replaces both."""
        if transport is None:
            known = context.find() if url is None or admin_key is None else context.Context(url, admin_key=admin_key)
            transport = Transport(url or known.url, admin_key or known.administrator_key())
        self.transport = transport
        self.images = Images(transport)
        self.publishes = Publishes(transport)
        self.deployment = Deployments(transport)
        self.registries = Registries(transport)
        self.nodes = Nodes(transport)
        self.projects = Projects(transport)
        self.scopes = Scopes(transport)
        self.bindings = Bindings(transport)
        self.allow_lists = AllowLists(transport)
        self.overrides = Overrides(transport)
        self.grants = Grants(transport)

    def disk(self) -> Sequence[NodeDisk]:
        """What image bytes take on each node, what they share, and what may go."""
        return [NodeDisk.of(item) for item in self.transport.pages("/core/v1/sandbox/disk")]

    def session(self, session: str) -> Session:
        """Any Session, with its node, runtime and first process on the host."""
        return Session.of(self.transport.send(Call("GET", f"/core/v1/sandbox/sessions/{segment(session)}")))

    def audit(self, subject: str | None = None, *, limit: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Who changed what, newest first: of one subject or of all, the whole audit or so many entries of it."""
        found: list[Mapping[str, Any]] = []
        for entry in self.transport.pages("/core/v1/audit", {"subject": subject}):
            if len(found) == limit:
                break
            found.append(entry)
        return found

    def audit_of_session(self, session: str) -> SessionAccount:
        """Which release a Session ran and why, however long ago, and what was done to it. Raises for an unknown one."""
        return SessionAccount.of(self.transport.send(Call("GET", f"/core/v1/audit/sessions/{segment(session)}")))

    def export_audit(self) -> Iterator[bytes]:
        """The whole audit as JSON lines, in pieces as they come; `verify_audit` tells whether they are whole."""
        response = self.transport.open(Call("GET", "/core/v1/audit/export", read_timeout=_EXPORTED_WITHIN))
        try:
            yield from response.iter_bytes()
        except httpx.TransportError as error:
            raise gone(self.transport.url, error, sent=True) from error
        finally:
            response.close()

    def events(self) -> Iterator[Event]:
        """All that lives: Sessions, nodes and images as they are now, and whenever one is different."""
        return follow(self.transport, "/core/v1/events")

    def readiness(self) -> Iterator[Event]:
        """The matrix of nodes and releases, cell by cell, now and whenever one is different."""
        return follow(self.transport, "/core/v1/sandbox/readiness")

    def close(self) -> None:
        """Close all connections."""
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
