"""What the asynchronous client and its synchronous twin do in two ways.

Everything else is written once, in `_async`; `./dev sdk` makes `_sync` from it, where `async_work` becomes `work`.
"""

import contextlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

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
