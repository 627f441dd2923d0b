"""The Python client of an installation.

    from sandbay import Sandbox

    with Sandbox.create("web:stable") as box:
        print(box.image.digest, box.image.decided_by)
        print(box.commands.run("node --version").stdout)

The same with `await`, under asyncio:

    from sandbay import AsyncSandbox

    async with await AsyncSandbox.create("web:stable") as box:
        print((await box.commands.run("node --version")).stdout)

Imports nothing else of Sandbay: it knows the HTTP interface and no more. The asynchronous client in `_async` is the
one that is written; `_sync` is made from it. What needs no network stands beside them, once.
"""

import importlib
from typing import TYPE_CHECKING

from sandbay.sdk.errors import SandbayError
from sandbay.sdk.frames import Chunk

if TYPE_CHECKING:
    from sandbay.sdk._async.admin import AsyncAdminClient
    from sandbay.sdk._async.client import AsyncClient
    from sandbay.sdk._async.sandbox import AsyncSandbox
    from sandbay.sdk._async.streaming import AsyncCommandStream
    from sandbay.sdk._sync.admin import AdminClient
    from sandbay.sdk._sync.client import Client
    from sandbay.sdk._sync.sandbox import Sandbox
    from sandbay.sdk._sync.streaming import CommandStream
    from sandbay.sdk.commands import Result
    from sandbay.sdk.resources import Progress

__all__ = [
    "AdminClient",
    "AsyncAdminClient",
    "AsyncClient",
    "AsyncCommandStream",
    "AsyncSandbox",
    "Chunk",
    "Client",
    "CommandStream",
    "Progress",
    "Result",
    "SandbayError",
    "Sandbox",
]

_HOMES = {
    "AdminClient": "_sync.admin",
    "AsyncAdminClient": "_async.admin",
    "AsyncClient": "_async.client",
    "AsyncCommandStream": "_async.streaming",
    "AsyncSandbox": "_async.sandbox",
    "Client": "_sync.client",
    "CommandStream": "_sync.streaming",
    "Progress": "resources",
    "Result": "commands",
    "Sandbox": "_sync.sandbox",
}


def __getattr__(name: str) -> object:
    """Nobody loads the client that is not used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
