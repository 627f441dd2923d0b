"""An installation as its administrators see it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from sandbay.sdk import context
from sandbay.sdk._async.catalog import AsyncImages
from sandbay.sdk._async.events import follow
from sandbay.sdk._async.publishes import AsyncPublishes
from sandbay.sdk._async.registries import AsyncRegistries
from sandbay.sdk._async.secrets import AsyncSecrets
from sandbay.sdk._async.selection import AsyncAllowLists, AsyncBindings, AsyncGrants, AsyncOverrides, AsyncScopes
from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.account import SessionAccount
from sandbay.sdk.client import said
from sandbay.sdk.disk import NodeDisk
from sandbay.sdk.events import Event
from sandbay.sdk.resources import Deployment, Key, Node, Project, Session
from sandbay.sdk.transport import gone, segment

_DEPLOYMENT = "/core/v1/sandbox/deployment"
_PROJECTS = "/core/v1/projects"
_EXPORTED_WITHIN = 300.0


class AsyncDeployments:
    """The one deployment of the installation."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self) -> Deployment:
        """As it is now."""
        return Deployment.of(await self._transport.send(AsyncCall("GET", _DEPLOYMENT)))

    async def put(
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
        return Deployment.of(await self._transport.send(AsyncCall("PUT", _DEPLOYMENT, json=body)))


class AsyncNodes:
    """The installation's nodes."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Node]:
        """All nodes, those that are away included."""
        return [Node.of(item) async for item in self._transport.pages("/core/v1/sandbox/nodes")]


class AsyncProjects:
    """Projects and their keys."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Project]:
        """All projects."""
        return [Project.of(item) async for item in self._transport.pages(_PROJECTS)]

    async def create(self, name: str) -> Project:
        """A new project. Raises `StateError` (name_taken)."""
        return Project.of(await self._transport.send(AsyncCall("POST", _PROJECTS, json={"name": name})))

    def secrets(self, project: str) -> AsyncSecrets:
        """The secrets of a project."""
        return AsyncSecrets(self._transport, f"{_PROJECTS}/{segment(project)}/secrets")

    async def keys(self, project: str) -> Sequence[Key]:
        """The keys of a project, without their secrets."""
        return [Key.of(item) async for item in self._transport.pages(f"{_PROJECTS}/{segment(project)}/keys")]

    async def change(
        self, project: str, *, scope_required: bool | None = None, expected_revision: int | None = None
    ) -> Project:
        """Change what is given. Raises `StateError` (revision_stale)."""
        body = said({"scope_required": scope_required, "expected_revision": expected_revision})
        return Project.of(await self._transport.send(AsyncCall("PATCH", f"{_PROJECTS}/{segment(project)}", json=body)))

    async def create_key(
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
        return Key.of(await self._transport.send(AsyncCall("POST", f"{_PROJECTS}/{segment(project)}/keys", json=body)))

    async def revoke_key(self, project: str, key: str) -> None:
        """End a key at once."""
        await self._transport.send(AsyncCall("DELETE", f"{_PROJECTS}/{segment(project)}/keys/{segment(key)}"))

    async def sessions(self, project: str) -> Sequence[Session]:
        """The Sessions of a project."""
        return [Session.of(item) async for item in self._transport.pages(f"{_PROJECTS}/{segment(project)}/sessions")]


class AsyncAdminClient:
    """A connection with an administrator key; where both come from is as with `Client`."""

    def __init__(
        self, url: str | None = None, admin_key: str | None = None, *, transport: AsyncTransport | None = None
    ) -> None:
        """`transport` replaces both."""
        if transport is None:
            known = context.find() if url is None or admin_key is None else context.Context(url, admin_key=admin_key)
            transport = AsyncTransport(url or known.url, admin_key or known.administrator_key())
        self.transport = transport
        self.images = AsyncImages(transport)
        self.publishes = AsyncPublishes(transport)
        self.deployment = AsyncDeployments(transport)
        self.registries = AsyncRegistries(transport)
        self.nodes = AsyncNodes(transport)
        self.projects = AsyncProjects(transport)
        self.scopes = AsyncScopes(transport)
        self.bindings = AsyncBindings(transport)
        self.allow_lists = AsyncAllowLists(transport)
        self.overrides = AsyncOverrides(transport)
        self.grants = AsyncGrants(transport)

    async def disk(self) -> Sequence[NodeDisk]:
        """What image bytes take on each node, what they share, and what may go."""
        return [NodeDisk.of(item) async for item in self.transport.pages("/core/v1/sandbox/disk")]

    async def session(self, session: str) -> Session:
        """Any Session, with its node, runtime and first process on the host."""
        return Session.of(await self.transport.send(AsyncCall("GET", f"/core/v1/sandbox/sessions/{segment(session)}")))

    async def audit(self, subject: str | None = None, *, limit: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Who changed what, newest first: of one subject or of all, the whole audit or so many entries of it."""
        found: list[Mapping[str, Any]] = []
        async for entry in self.transport.pages("/core/v1/audit", {"subject": subject}):
            if len(found) == limit:
                break
            found.append(entry)
        return found

    async def audit_of_session(self, session: str) -> SessionAccount:
        """Which release a Session ran and why, however long ago, and what was done to it. Raises for an unknown one."""
        return SessionAccount.of(
            await self.transport.send(AsyncCall("GET", f"/core/v1/audit/sessions/{segment(session)}"))
        )

    async def export_audit(self) -> AsyncIterator[bytes]:
        """The whole audit as JSON lines, in pieces as they come; `verify_audit` tells whether they are whole."""
        response = await self.transport.open(AsyncCall("GET", "/core/v1/audit/export", read_timeout=_EXPORTED_WITHIN))
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.TransportError as error:
            raise gone(self.transport.url, error, sent=True) from error
        finally:
            await response.aclose()

    def events(self) -> AsyncIterator[Event]:
        """All that lives: Sessions, nodes and images as they are now, and whenever one is different."""
        return follow(self.transport, "/core/v1/events")

    def readiness(self) -> AsyncIterator[Event]:
        """The matrix of nodes and releases, cell by cell, now and whenever one is different."""
        return follow(self.transport, "/core/v1/sandbox/readiness")

    async def aclose(self) -> None:
        """Close all connections."""
        await self.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
