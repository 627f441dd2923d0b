"""An installation as one project sees it."""

import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from sandbay.sdk import context
from sandbay.sdk._async.admission import AsyncAdmission
from sandbay.sdk._async.events import follow
from sandbay.sdk._async.secrets import AsyncSecrets
from sandbay.sdk._async.selection import AsyncOwnBindings, AsyncOwnScopes
from sandbay.sdk._async.templates import AsyncTemplates
from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.client import SUSPEND_WAIT, WAIT, Wish, said
from sandbay.sdk.errors import of_reason
from sandbay.sdk.events import Event
from sandbay.sdk.resources import Project, Session, UsableImage
from sandbay.sdk.templates import files
from sandbay.sdk.transport import segment

_LONGEST_POLL = 30


class AsyncImages:
    """The images that this project may use."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[UsableImage]:
        """All of them."""
        return [UsableImage.of(item) async for item in self._transport.pages("/v1/images")]

    async def explain(
        self,
        image: str | None = None,
        *,
        template: str | None = None,
        platform: str | None = None,
        requires: Sequence[str] | None = None,
        agent: str | None = None,
        scope: str | None = None,
    ) -> Mapping[str, Any]:
        """What a create would decide now: `{resolved, refusal, trail, placement}`. Nothing is made."""
        where = {"agent": agent, "scope": scope}
        body = {"runtime_image_id": image, "template": template, "platform": platform, "requires": requires, **where}
        call = AsyncCall("POST", "/v1/explain", json=said(body), repeatable=True)
        answer: Mapping[str, Any] = await self._transport.send(call)
        return answer

    async def what_if(
        self, image: str | None, *, agent: str | None = None, scope: str | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Whose answers would change if this agent, scope, or without either the project preferred the image.

        None: if it preferred nothing. Each is `{kind, name, project, before, after}`; nothing is written.
        """
        body = {"runtime_image_id": image, **said({"agent": agent, "scope": scope})}
        call = AsyncCall("POST", "/v1/what-if", json=body, repeatable=True)
        changes: Sequence[Mapping[str, Any]] = (await self._transport.send(call))["changes"]
        return changes


class AsyncSessions:
    """The Sessions of this project."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def request(
        self,
        image: str | None = None,
        *,
        wait: int = WAIT,
        **wish: Unpack[Wish],
    ) -> AsyncAdmission:
        """A Session to be made, nothing sent yet. `wait` in seconds."""
        said = {**wish, "files": files(wish.get("files"))}
        return AsyncAdmission(self._transport, {"runtime_image_id": image, "wait_seconds": wait, **said})

    async def list(self) -> Sequence[Session]:
        """All Sessions of the project, ended ones included as long as they are kept."""
        return [Session.of(item) async for item in self._transport.pages("/v1/sessions")]

    async def get(self, session: str) -> Session:
        """One Session. Raises `UnknownReferenceError` (not_found)."""
        return Session.of(await self._transport.send(AsyncCall("GET", f"/v1/sessions/{segment(session)}")))

    def events(self, session: str) -> AsyncIterator[Event]:
        """Its events up to its end: `state`, each state that it came to, and why; `progress` of what it waits for.

        Raises `UnknownReferenceError` (not_found).
        """
        return follow(self._transport, f"/v1/sessions/{segment(session)}/events")

    async def suspend(self, session: str, *, wait: int = SUSPEND_WAIT) -> Session:
        """Keep its files and end its processes; one that is suspended is fine. Waits at most `wait` seconds for that.

        Raises `StateError` (not_running, already_ended) and `RequestError` (ability_unsupported).
        """
        return await self._moved(session, "suspend", "suspending", "suspended", wait)

    async def resume(self, session: str, *, wait: int = SUSPEND_WAIT) -> Session:
        """Start it from what was kept, on its own release; one that runs is fine. Waits at most `wait` seconds.

        Raises `StateError` (not_suspended, already_ended), `PlacementError` (snapshot_node_offline, image_lost,
        no_capacity and others), and why it did not start: it is suspended on then.
        """
        return await self._moved(session, "resume", "resuming", "running", wait)

    async def _moved(self, session: str, verb: str, on_the_way: str, there: str, wait: int) -> Session:
        path = f"/v1/sessions/{segment(session)}"
        call = AsyncCall("POST", f"{path}/{verb}", repeatable=True)
        moved = Session.of(await self._transport.send(call))
        deadline = time.monotonic() + wait
        while moved.status == on_the_way and (left := math.ceil(deadline - time.monotonic())) > 0:
            look: dict[str, str | int | float | None] = {"wait": min(left, _LONGEST_POLL), "status": on_the_way}
            seen = AsyncCall("GET", path, params=look, read_timeout=_LONGEST_POLL + 30.0)
            moved = Session.of(await self._transport.send(seen))
        if moved.status not in (on_the_way, there) and moved.reason is not None:
            raise of_reason({"code": moved.reason.code, "message": moved.reason.message})
        return moved

    async def delete(self, session: str, *, wait: int = 0) -> Session:
        """End a Session; one that has ended is fine. Waits at most `wait` (≤ 30) seconds until it is gone."""
        path = f"/v1/sessions/{segment(session)}"
        ending = Session.of(await self._transport.send(AsyncCall("DELETE", path)))
        if not wait or ending.status != "ending":
            return ending
        look = AsyncCall("GET", path, params={"wait": wait, "status": ending.status}, read_timeout=wait + 30.0)
        return Session.of(await self._transport.send(look))


class AsyncClient:
    """A connection with a project key.

    Without `url` and `api_key` they come from the environment or from the file that `sandbay up` wrote.
    Raises `NoContextError` when there are none.
    """

    def __init__(
        self, url: str | None = None, api_key: str | None = None, *, transport: AsyncTransport | None = None
    ) -> None:
        """`transport` replaces both."""
        if transport is None:
            known = context.find() if url is None or api_key is None else context.Context(url, api_key)
            transport = AsyncTransport(url or known.url, api_key or known.project_key())
        self.transport = transport
        self.images = AsyncImages(transport)
        self.sessions = AsyncSessions(transport)
        self.templates = AsyncTemplates(transport)
        self.scopes = AsyncOwnScopes(transport)
        self.bindings = AsyncOwnBindings(transport)
        self.secrets = AsyncSecrets(transport)

    async def project(self) -> Project:
        """The project of this key."""
        return Project.of(await self.transport.send(AsyncCall("GET", "/v1/project")))

    async def set_project_image(self, image: str | None, *, expected_revision: int | None = None) -> Project:
        """Set, or with None clear, the project's standing preference. A refused write changes nothing."""
        body: dict[str, Any] = {"runtime_image_id": image}
        if expected_revision is not None:
            body["expected_revision"] = expected_revision
        return Project.of(await self.transport.send(AsyncCall("PATCH", "/v1/project", json=body)))

    async def aclose(self) -> None:
        """Close all connections."""
        await self.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
