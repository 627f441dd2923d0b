"""The SDK's clients, imported when a command asks for one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbay.sdk import AdminClient, Client
    from sandbay.sdk._sync.secrets import Secrets
    from sandbay.sdk.context import Context


def project(context: "Context | None" = None) -> "Client":
    """A client with the project key of the context, by default of the one in force."""
    _lean_httpx()
    from sandbay.sdk import Client

    return Client() if context is None else Client(context.url, context.project_key())


def administrator(context: "Context | None" = None) -> "AdminClient":
    """A client with the administrator key of the context, by default of the one in force."""
    _lean_httpx()
    from sandbay.sdk import AdminClient

    return AdminClient() if context is None else AdminClient(context.url, context.administrator_key())


@contextmanager
def secrets(of: str | None) -> "Iterator[Secrets]":
    """The secrets of the project of the key at hand, or of a named one with an administrator key."""
    if of is None:
        with project() as client:
            yield client.secrets
    else:
        with administrator() as admin:
            yield admin.projects.secrets(of)


def known() -> "Context":
    """Which installation this is and which keys there are."""
    _lean_httpx()
    from sandbay.sdk import context

    return context.find()


def _lean_httpx() -> None:
    """Import httpx without its own command line, which would load click, rich and pygments: 0.3 s."""
    if "httpx" in sys.modules:
        return
    own_command_line, modules = "httpx._main", dict[str, Any](sys.modules)
    sys.modules[own_command_line] = None  # type: ignore[assignment]  # "not installed", which httpx expects
    try:
        import httpx  # noqa: F401
    finally:
        if own_command_line not in modules:
            del sys.modules[own_command_line]
