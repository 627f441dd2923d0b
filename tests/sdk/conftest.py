import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.both_clients import AsyncSdk, SyncSdk, runner

Connect = Callable[[str], Any]


@pytest.fixture(params=["sync", "async"])
def sdk(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The classes of either client; what a test does with the one must come of the other, too."""
    if request.param == "sync":
        yield SyncSdk
        return
    loop, run = runner()
    with loop:
        yield AsyncSdk(run)


@pytest.fixture
def connect(sdk: Any) -> Iterator[Connect]:
    """Transports that do not pause between attempts, closed at the end."""
    with contextlib.ExitStack() as stack:

        def make(url: str) -> Any:
            transport = sdk.Transport(url, "sbp_1", sleep=sdk.sleeper(lambda seconds: None))
            return stack.enter_context(contextlib.closing(transport))

        yield make
