"""Sandboxes for agents from many named, pinned images in one installation.

`from sandbay import Client, Sandbox` gives the SDK, `AsyncClient` and `AsyncSandbox` its asynchronous form. The names
are looked up when they are asked for, so that a server or a node never loads the SDK. Nothing inside this package
imports from here.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbay.sdk import AdminClient, AsyncAdminClient, AsyncClient, AsyncSandbox, Client, Sandbox

__all__ = ["AdminClient", "AsyncAdminClient", "AsyncClient", "AsyncSandbox", "Client", "Sandbox"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("sandbay.sdk"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
