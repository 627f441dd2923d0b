"""Who chooses an image: scopes, bindings and ceilings, for administrators and for a project."""

from collections.abc import Mapping, Sequence

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.client import said
from sandbay.sdk.selection import (
    ALLOW_LISTS,
    BINDINGS,
    GRANTS,
    OVERRIDES,
    SCOPES,
    AllowList,
    Binding,
    Grant,
    Override,
    Scope,
    own_binding,
)
from sandbay.sdk.transport import segment


class _AsyncStanding:
    """What stands under subjects. Writes raise `UnknownReferenceError`, and `StateError` (revision_stale)."""

    _at: str

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def delete(self, subject: str, *, expected_revision: int | None = None) -> None:
        """Take it away."""
        params = {"expected_revision": expected_revision}
        await self._transport.send(AsyncCall("DELETE", f"{self._at}/{segment(subject)}", params=params))

    def _put(self, subject: str, body: Mapping[str, object]) -> AsyncCall:
        return AsyncCall("PUT", f"{self._at}/{segment(subject)}", json=said(body))


class AsyncBindings(_AsyncStanding):
    """Bindings, one for each subject."""

    _at = BINDINGS

    async def list(self) -> Sequence[Binding]:
        """All of them."""
        return [Binding.of(item) async for item in self._transport.pages(BINDINGS)]

    async def put(
        self,
        subject: str,
        image: str,
        *,
        mode: str = "prefer",
        reason: str | None = None,
        expected_revision: int | None = None,
    ) -> Binding:
        """Bind a subject to an image reference, in place of its binding. Raises `ChoosingError` too."""
        body = {"runtime_image_id": image, "mode": mode, "reason": reason, "expected_revision": expected_revision}
        return Binding.of(await self._transport.send(self._put(subject, body)))


class AsyncAllowLists(_AsyncStanding):
    """Allow-lists, one for each deployment, project, scope. No list allows everything, an empty one nothing."""

    _at = ALLOW_LISTS

    async def list(self) -> Sequence[AllowList]:
        """All of them."""
        return [AllowList.of(item) async for item in self._transport.pages(ALLOW_LISTS)]

    async def put(
        self,
        subject: str,
        *,
        everything: bool = False,
        images: Sequence[str] = (),
        labels: Sequence[Mapping[str, str]] = (),
        reason: str | None = None,
        expected_revision: int | None = None,
    ) -> AllowList:
        """Write a subject's list. Each of `labels` is a selector: an image that has all of one is allowed."""
        chosen = {"everything": everything, "images": list(images), "labels": [dict(it) for it in labels]}
        body = {**chosen, "reason": reason, "expected_revision": expected_revision}
        return AllowList.of(await self._transport.send(self._put(subject, body)))


class AsyncOverrides(_AsyncStanding):
    """Whether Session requests may name an image, for each deployment, project, scope."""

    _at = OVERRIDES

    async def list(self) -> Sequence[Override]:
        """All of them."""
        return [Override.of(item) async for item in self._transport.pages(OVERRIDES)]

    async def put(
        self, subject: str, override: str, *, reason: str | None = None, expected_revision: int | None = None
    ) -> Override:
        """Say `allow` or `deny`."""
        body = {"override": override, "reason": reason, "expected_revision": expected_revision}
        return Override.of(await self._transport.send(self._put(subject, body)))


class AsyncGrants:
    """Who may use restricted images: projects and scopes."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Grant]:
        """All of them."""
        return [Grant.of(item) async for item in self._transport.pages(GRANTS)]

    async def put(self, subject: str, image: str, *, reason: str | None = None) -> Grant:
        """Let a subject use an image. Raises `UnknownReferenceError`."""
        call = AsyncCall("PUT", f"{GRANTS}/{segment(subject)}/{segment(image)}", json=said({"reason": reason}))
        return Grant.of(await self._transport.send(call))

    async def delete(self, subject: str, image: str) -> None:
        """Take it away. Raises `UnknownReferenceError` (not_found)."""
        await self._transport.send(AsyncCall("DELETE", f"{GRANTS}/{segment(subject)}/{segment(image)}"))


class AsyncScopes:
    """All scopes of the installation."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Scope]:
        """All of them."""
        return [Scope.of(item) async for item in self._transport.pages(SCOPES)]

    async def put(
        self,
        name: str,
        *,
        parent: str | None = None,
        project: str | None = None,
        expected_revision: int | None = None,
    ) -> Scope:
        """Register `kind:ref`, or move it below another parent. Raises `StateError`, `UnknownReferenceError`."""
        body = {"parent": parent, "project": project, "expected_revision": expected_revision}
        return Scope.of(await self._transport.send(AsyncCall("PUT", f"{SCOPES}/{segment(name)}", json=said(body))))

    async def delete(self, name: str, *, expected_revision: int | None = None) -> None:
        """Forget it. Raises `StateError` (in_use) while something needs it."""
        params = {"expected_revision": expected_revision}
        await self._transport.send(AsyncCall("DELETE", f"{SCOPES}/{segment(name)}", params=params))


class AsyncOwnScopes:
    """The scopes that Sessions of this key may name."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Scope]:
        """All of them."""
        return [Scope.of(item) async for item in self._transport.pages("/v1/scopes")]

    async def put(self, name: str, *, parent: str, expected_revision: int | None = None) -> Scope:
        """Register `kind:ref` below one of the project's own. Raises `AccessError` (forbidden) elsewhere."""
        body = {"parent": parent, "expected_revision": expected_revision}
        return Scope.of(await self._transport.send(AsyncCall("PUT", f"/v1/scopes/{segment(name)}", json=said(body))))

    async def delete(self, name: str, *, expected_revision: int | None = None) -> None:
        """Forget it. Raises `StateError` (in_use) while something needs it."""
        params = {"expected_revision": expected_revision}
        await self._transport.send(AsyncCall("DELETE", f"/v1/scopes/{segment(name)}", params=params))


class AsyncOwnBindings:
    """What the project's own scopes and agents prefer. A subject is `scope:KIND:REF` or `agent:NAME`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, subject: str) -> Binding:
        """The binding of a subject. Raises `UnknownReferenceError`."""
        return Binding.of(await self._transport.send(AsyncCall("GET", own_binding(subject))))

    async def put(
        self, subject: str, image: str, *, reason: str | None = None, expected_revision: int | None = None
    ) -> Binding:
        """Let a subject prefer an image reference. Raises `AccessError` (forbidden) where that is not this key's."""
        body = {"runtime_image_id": image, "reason": reason, "expected_revision": expected_revision}
        return Binding.of(await self._transport.send(AsyncCall("PUT", own_binding(subject), json=said(body))))

    async def delete(self, subject: str, *, expected_revision: int | None = None) -> None:
        """Take the preference away."""
        params = {"expected_revision": expected_revision}
        await self._transport.send(AsyncCall("DELETE", own_binding(subject), params=params))
