# Made by `./dev sdk` from _async/templates.py, which is the one to edit.
"""A project's Templates: what its Sessions are prepared with."""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbay.sdk._sync.transport import Call, Transport
from sandbay.sdk.templates import Template
from sandbay.sdk.transport import segment

_TEMPLATES = "/v1/environments/templates"


class Templates:
    """By name or id. Raises `UnknownReferenceError` (template_unknown), and what would refuse a Session of one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Sequence[Template]:
        """All of them, by name, without the bytes of their files."""
        return [Template.of(item) for item in self._transport.pages(_TEMPLATES)]

    def get(self, template: str) -> Template:
        """One of them, whole."""
        return Template.of(self._transport.send(Call("GET", self._at(template))))

    def create(self, name: str, said: Mapping[str, Any]) -> Template:
        """Make one. `said` has the members of the API; `sandbay.sdk.templates.read` reads them from a disk."""
        body = {**said, "name": name}
        return Template.of(self._transport.send(Call("POST", _TEMPLATES, json=body)))

    def update(self, template: str, said: Mapping[str, Any], *, expected_revision: int | None = None) -> Template:
        """Change what is said: a member that is left out keeps what there is, None clears it."""
        body = dict(said) if expected_revision is None else {**said, "expected_revision": expected_revision}
        return Template.of(self._transport.send(Call("PATCH", self._at(template), json=body)))

    def delete(self, template: str) -> None:
        """Forget it. Sessions keep what they were admitted with."""
        self._transport.send(Call("DELETE", self._at(template)))

    @staticmethod
    def _at(template: str) -> str:
        return f"{_TEMPLATES}/{segment(template)}"
