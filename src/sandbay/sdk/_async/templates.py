"""A project's Templates: what its Sessions are prepared with."""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.templates import Template
from sandbay.sdk.transport import segment

_TEMPLATES = "/v1/environments/templates"


class AsyncTemplates:
    """By name or id. Raises `UnknownReferenceError` (template_unknown), and what would refuse a Session of one."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence[Template]:
        """All of them, by name, without the bytes of their files."""
        return [Template.of(item) async for item in self._transport.pages(_TEMPLATES)]

    async def get(self, template: str) -> Template:
        """One of them, whole."""
        return Template.of(await self._transport.send(AsyncCall("GET", self._at(template))))

    async def create(self, name: str, said: Mapping[str, Any]) -> Template:
        """Make one. `said` has the members of the API; `sandbay.sdk.templates.read` reads them from a disk."""
        body = {**said, "name": name}
        return Template.of(await self._transport.send(AsyncCall("POST", _TEMPLATES, json=body)))

    async def update(self, template: str, said: Mapping[str, Any], *, expected_revision: int | None = None) -> Template:
        """Change what is said: a member that is left out keeps what there is, None clears it."""
        body = dict(said) if expected_revision is None else {**said, "expected_revision": expected_revision}
        return Template.of(await self._transport.send(AsyncCall("PATCH", self._at(template), json=body)))

    async def delete(self, template: str) -> None:
        """Forget it. Sessions keep what they were admitted with."""
        await self._transport.send(AsyncCall("DELETE", self._at(template)))

    @staticmethod
    def _at(template: str) -> str:
        return f"{_TEMPLATES}/{segment(template)}"
