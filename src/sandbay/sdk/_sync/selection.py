# Made by `./dev sdk` from _async/selection.py, which is the one to edit.
"""Who chooses an image: scopes, bindings and ceilings, for administrators and for a project."""

from collections.abc import Mapping, Sequence

from sandbay.sdk._sync.transport import Call, Transport
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

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def delete(self, subject: str, *, expected_revision: int | None = None) -> None:
        """Take it away."""
        params = {"expected_revision": expected_revision}
        self._transport.send(Call("DELETE", f"{self._at}/{segment(subject)}", params=params))

    def _put(self, subject: str, body: Mapping[str, object]) -> Call:
        return Call("PUT", f"{self._at}/{segment(subject)}", json=said(body))


class Bindings(_AsyncStanding):
    """Bindings, one for each subject."""

    _at = BINDINGS

    def list(self) -> Sequence[Binding]:
        """All of them."""
        return [Binding.of(item) for item in self._transport.pages(BINDINGS)]

    def put(
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
        return Binding.of(self._transport.send(self._put(subject, body)))


class AllowLists(_AsyncStanding):
    """Allow-lists, one for each deployment, project, scope. No list allows everything, an empty one nothing."""

    _at = ALLOW_LISTS

    def list(self) -> Sequence[AllowList]:
        """All of them."""
        return [AllowList.of(item) for item in self._transport.pages(ALLOW_LISTS)]

    def put(
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
        return AllowList.of(self._transport.send(self._put(subject, body)))


class Overrides(_AsyncStanding):
    """Whether Session requests may name an image, for each deployment, project, scope."""

    _at = OVERRIDES

    def list(self) -> Sequence[Override]:
        """All of them."""
        return [Override.of(item) for item in self._transport.pages(OVERRIDES)]

    def put(
        self, subject: str, override: str, *, reason: str | None = None, expected_revision: int | None = None
    ) -> Override:
        """Say `allow` or `deny`."""
        body = {"override": override, "reason": reason, "expected_revision": expected_revision}
        return Override.of(self._transport.send(self._put(subject, body)))


class Grants:
    """Who may use restricted images: projects and scopes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Grant]:
        """All of them."""
        return [Grant.of(item) for item in self._transport.pages(GRANTS)]

    def put(self, subject: str, image: str, *, reason: str | None = None) -> Grant:
        """Let a subject use an image. Raises `UnknownReferenceError`."""
        call = Call("PUT", f"{GRANTS}/{segment(subject)}/{segment(image)}", json=said({"reason": reason}))
        return Grant.of(self._transport.send(call))

    def delete(self, subject: str, image: str) -> None:
        """Take it away. Raises `UnknownReferenceError` (not_found)."""
        self._transport.send(Call("DELETE", f"{GRANTS}/{segment(subject)}/{segment(image)}"))


class Scopes:
    """All scopes of the installation."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Scope]:
        """All of them."""
        return [Scope.of(item) for item in self._transport.pages(SCOPES)]

    def put(
        self,
        name: str,
        *,
        parent: str | None = None,
        project: str | None = None,
        expected_revision: int | None = None,
    ) -> Scope:
        """Register `kind:ref`, or move it below another parent. Raises `StateError`, `UnknownReferenceError`."""
        body = {"parent": parent, "project": project, "expected_revision": expected_revision}
        return Scope.of(self._transport.send(Call("PUT", f"{SCOPES}/{segment(name)}", json=said(body))))

    def delete(self, name: str, *, expected_revision: int | None = None) -> None:
        """Forget it. Raises `StateError` (in_use) while something needs it."""
        params = {"expected_revision": expected_revision}
        self._transport.send(Call("DELETE", f"{SCOPES}/{segment(name)}", params=params))


class OwnScopes:
    """The scopes that Sessions of this key may name."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Scope]:
        """All of them."""
        return [Scope.of(item) for item in self._transport.pages("/v1/scopes")]

    def put(self, name: str, *, parent: str, expected_revision: int | None = None) -> Scope:
        """Register `kind:ref` below one of the project's own. Raises `AccessError` (forbidden) elsewhere."""
        body = {"parent": parent, "expected_revision": expected_revision}
        return Scope.of(self._transport.send(Call("PUT", f"/v1/scopes/{segment(name)}", json=said(body))))

    def delete(self, name: str, *, expected_revision: int | None = None) -> None:
        """Forget it. Raises `StateError` (in_use) while something needs it."""
        params = {"expected_revision": expected_revision}
        self._transport.send(Call("DELETE", f"/v1/scopes/{segment(name)}", params=params))


class OwnBindings:
    """What the project's own scopes and agents prefer. A subject is `scope:KIND:REF` or `agent:NAME`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, subject: str) -> Binding:
        """The binding of a subject. Raises `UnknownReferenceError`."""
        return Binding.of(self._transport.send(Call("GET", own_binding(subject))))

    def put(
        self, subject: str, image: str, *, reason: str | None = None, expected_revision: int | None = None
    ) -> Binding:
        """Let a subject prefer an image reference. Raises `AccessError` (forbidden) where that is not this key's."""
        body = {"runtime_image_id": image, "reason": reason, "expected_revision": expected_revision}
        return Binding.of(self._transport.send(Call("PUT", own_binding(subject), json=said(body))))

    def delete(self, subject: str, *, expected_revision: int | None = None) -> None:
        """Take the preference away."""
        params = {"expected_revision": expected_revision}
        self._transport.send(Call("DELETE", own_binding(subject), params=params))
