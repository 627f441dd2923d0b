"""Installations behind HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbay.app.core import Settings
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
    """An installation with the default image `web` and nothing else, for tests that change nothing.

    Every route tries wrong keys on it: how many it bears is tried elsewhere.
    """
    it = Served(tmp_path_factory.mktemp("shared"), Settings(bad_keys_per_second=0))
    try:
        it.image("web")
        yield it
    finally:
        it.close()
