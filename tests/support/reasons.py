"""Which reasons answers of the public API have named, so that `@pytest.mark.produces(Reason.X)` is held to its word.

In-process servers are watched by wrapping the application in `Watched`. A test that talks to another process
gives what it read to `note`.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]

_CODE = re.compile(rb'"code":\s*"([a-z_]+)"')

seen: set[str] = set()
"""Codes that answers have named since the current test began."""


def note(answer: bytes | str) -> None:
    """Remember the codes of an envelope, a Session's reason or a release's fault, as JSON."""
    data = answer.encode() if isinstance(answer, str) else answer
    seen.update(code.decode() for code in _CODE.findall(data))


class Watched:
    """An ASGI application whose answers are noted, bytes of files excepted."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        told = True

        async def noting(message: Message) -> None:
            nonlocal told
            if message["type"] == "http.response.start":
                told = (b"content-type", b"application/octet-stream") not in message["headers"]
            if message["type"] == "http.response.body" and told:
                note(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, noting)
