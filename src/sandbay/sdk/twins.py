"""What the asynchronous client and its synchronous twin do in two ways.

Everything else is written once, in `_async`; `./dev sdk` makes `_sync` from it, where `async_work` becomes `work`.
"""

import contextlib
import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from asyncio import Task

Args = ParamSpec("Args")
Result = TypeVar("Result")

Sleep = Callable[[float], None]
AsyncSleep = Callable[[float], Awaitable[None]]
Pieces = Iterable[bytes]
AsyncPieces = Iterable[bytes] | AsyncIterable[bytes]


def work(function: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs) -> Result:
    """Call a function that may take a while, as reading a file does."""
    return function(*args, **kwargs)


async def async_work(function: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs) -> Result:
    """As `work`, in a thread, so that the loop goes on meanwhile. It is waited for to its end, cancelled or not."""
    from anyio import to_thread  # noqa: PLC0415 - the synchronous client starts without it

    return await to_thread.run_sync(lambda: function(*args, **kwargs))


def sleep(seconds: float) -> None:
    """Pause."""
    time.sleep(seconds)


async def async_sleep(seconds: float) -> None:
    """As `sleep`; the loop goes on meanwhile."""
    import anyio  # noqa: PLC0415 - as in async_work

    await anyio.sleep(seconds)


def each(pieces: Pieces) -> Iterator[bytes]:
    """The pieces one by one."""
    yield from pieces


async def async_each(pieces: AsyncPieces) -> AsyncIterator[bytes]:
    """As `each`; an iterable that is not asynchronous may block, and is asked in a thread."""
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            yield piece
        return
    iterator = iter(pieces)
    while (taken := await async_work(next, iterator, None)) is not None:
        yield taken


def shielded() -> contextlib.AbstractContextManager[object]:
    """A block in which something is tidied up."""
    return contextlib.nullcontext()


def async_shielded() -> contextlib.AbstractContextManager[object]:
    """As `shielded`; a cancellation that has already arrived does not tear it apart."""
    import anyio  # noqa: PLC0415 - as in async_work

    return anyio.CancelScope(shield=True)


class Quota:
    """How many bytes may still be sent."""

    def __init__(self, size: int) -> None:
        """Begin with this many."""
        self._left, self._ended = size, False
        self._changed = threading.Condition()

    def add(self, size: int) -> None:
        """That many more."""
        with self._changed:
            self._left += size
            self._changed.notify_all()

    def end(self) -> None:
        """There will be no more; whoever waits is told."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self, size: int) -> bool:
        """Wait until `size` bytes may be sent; False when it has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._left >= size)
            self._left -= size
            return not self._ended


class AsyncQuota:
    """As `Quota`, of one event loop."""

    def __init__(self, size: int) -> None:
        """Begin with this many."""
        import asyncio  # noqa: PLC0415 - as anyio above

        self._left, self._ended = size, False
        self._changed = asyncio.Event()

    def add(self, size: int) -> None:
        """That many more."""
        self._left += size
        self._changed.set()

    def end(self) -> None:
        """There will be no more; whoever waits is told."""
        self._ended = True
        self._changed.set()

    async def take(self, size: int) -> bool:
        """Wait until `size` bytes may be sent; False when it has ended."""
        while not self._ended and self._left < size:
            self._changed.clear()
            await self._changed.wait()
        self._left -= size
        return not self._ended


class Aside:
    """Something that goes on in a thread of its own, and ends with the program."""

    def __init__(self, function: Callable[Args, object], *args: Args.args, **kwargs: Args.kwargs) -> None:
        """Begin."""
        work = threading.Thread(target=function, args=args, kwargs=kwargs, name="sandbay-aside", daemon=True)
        work.start()

    def cancel(self) -> None:
        """It cannot be stopped; what it waits for tells it."""


def aside(function: Callable[Args, object], *args: Args.args, **kwargs: Args.kwargs) -> Aside:
    """Begin something that goes on while the caller does."""
    return Aside(function, *args, **kwargs)


def async_aside(
    function: Callable[Args, Coroutine[object, object, object]], *args: Args.args, **kwargs: Args.kwargs
) -> "Task[object]":
    """As `aside`, as a task."""
    import asyncio  # noqa: PLC0415 - as anyio above

    return asyncio.get_running_loop().create_task(function(*args, **kwargs))
