"""Installations for the tests of use cases."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.world import KilledError, Running, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    it = World(tmp_path / "world")
    try:
        yield it
    finally:
        it.close()


@pytest.fixture
def running(world: World) -> Running:
    return world.born().start()


@pytest.fixture(autouse=True)
def _killed_threads_are_no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted kill ends threads, too; any other exception in one still fails the test."""
    told = threading.excepthook
    monkeypatch.setattr(threading, "excepthook", lambda gone: None if gone.exc_type is KilledError else told(gone))
