"""Installations behind HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.served import Served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """An installation of this test's own."""
    it = Served(tmp_path)
    try:
        yield it
    finally:
        it.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An installation with the default image `web` and nothing else, for tests that change nothing."""
    it = Served(tmp_path_factory.mktemp("shared"))
    try:
        it.image("web")
        yield it
    finally:
        it.close()
