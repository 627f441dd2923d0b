import contextlib
from collections.abc import Callable, Iterator

import pytest

from sandbay.sdk.transport import Transport

Connect = Callable[[str], Transport]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Transports that do not pause between attempts, closed at the end."""
    with contextlib.ExitStack() as stack:

        def make(url: str) -> Transport:
            return stack.enter_context(contextlib.closing(Transport(url, "sbp_1", sleep=lambda seconds: None)))

        yield make
