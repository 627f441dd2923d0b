"""The SDK's two clients under one set of tests: the asynchronous one is driven as if it were the other."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Self

from sandbay.sdk._async import admin as async_admin
from sandbay.sdk._async import client as async_client
from sandbay.sdk._async import commands as async_commands
from sandbay.sdk._async import files as async_files
from sandbay.sdk._async import sandbox as async_sandbox
from sandbay.sdk._async import transport as async_transport
from sandbay.sdk._sync import admin, client, commands, files, sandbox, transport

Run = Callable[[Any], Any]


class SyncSdk:
    """The synchronous client's classes, as they are."""

    AdminClient = admin.AdminClient
    Client = client.Client
    Commands = commands.Commands
    Files = files.Files
    Sandbox = sandbox.Sandbox
    Transport = transport.Transport

    @staticmethod
    def sleeper(pause: Callable[[float], None]) -> Callable[[float], None]:
        """What a transport takes as `sleep`."""
        return pause


class AsyncSdk:
    """The asynchronous client's classes, each call run to its end on one loop."""

    def __init__(self, run: Run) -> None:
        self.AdminClient = Driven(async_admin.AsyncAdminClient, run)
        self.Client = Driven(async_client.AsyncClient, run)
        self.Commands = Driven(async_commands.AsyncCommands, run)
        self.Files = Driven(async_files.AsyncFiles, run)
        self.Sandbox = Driven(async_sandbox.AsyncSandbox, run)
        self.Transport = Driven(async_transport.AsyncTransport, run)

    @staticmethod
    def sleeper(pause: Callable[[float], None]) -> Callable[[float], Awaitable[None]]:
        """What a transport takes as `sleep`."""

        async def sleep(seconds: float) -> None:
            pause(seconds)

        return sleep


class Driven:
    """Something of the asynchronous client; whatever comes of it is driven, too."""

    def __init__(self, target: Any, run: Run) -> None:
        self._target, self._run = target, run

    def __getattr__(self, name: str) -> Any:
        return self._come(getattr(self._target, {"close": "aclose"}.get(name, name)))

    def __call__(self, *args: Any, **options: Any) -> Any:
        plain = {name: _undriven(value) for name, value in options.items()}
        return self._come(self._target(*map(_undriven, args), **plain))

    def __enter__(self) -> Any:
        return self._come(self._target.__aenter__())

    def __exit__(self, *error: object) -> None:
        self._run(self._target.__aexit__(*error))

    def __iter__(self) -> Iterator[Any]:
        return _Items(self._target.__aiter__(), self._run)

    def _come(self, value: Any) -> Any:
        if inspect.iscoroutine(value):
            return self._come(self._run(value))
        home = value.__module__ if isinstance(value, type) else type(value).__module__
        ours = home.startswith("sandbay.sdk._async")
        return Driven(value, self._run) if ours or inspect.isasyncgen(value) or inspect.ismethod(value) else value


class _Items:
    def __init__(self, iterator: Any, run: Run) -> None:
        self._iterator, self._run = iterator, run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return self._run(anext(self._iterator))
        except StopAsyncIteration:
            raise StopIteration from None


def runner() -> tuple[asyncio.Runner, Run]:
    """A loop, and how it runs one awaitable to its end."""
    loop = asyncio.Runner()

    def run(awaitable: Any) -> Any:
        async def wait() -> Any:
            return await awaitable

        return loop.run(wait())

    return loop, run


def _undriven(value: Any) -> Any:
    return value._target if isinstance(value, Driven) else value
