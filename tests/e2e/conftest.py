"""Real installations for the end-to-end tests. The host must look after them as it did before."""

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.e2e.host import shape, traces
from tests.e2e.installation import Installation
from tests.e2e.rigged import InProcess, Rigged

_NEEDED = ("runc", "busybox")


@pytest.fixture(scope="session", autouse=True)
def _able() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: real sandboxes make mounts and user namespaces")
    missing = [program for program in _NEEDED if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: ./dev setup installs it")


@pytest.fixture(scope="module")
def house() -> Iterator[Installation]:
    """A running installation with a healthy default image `plain` beside whatever a test does."""
    before = shape()
    it = Installation()
    try:
        it.up()
        done = it.register("plain", it.image("plain"))
        assert done.code == 0, done
        yield it
    finally:
        it.close()
    assert traces(str(it.root)) == set()
    assert shape() == before


@pytest.fixture
def rigged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rigged]:
    """An installation in this process with a provider that can be told to misbehave; `plain` has run once."""
    before = shape()
    house = Installation()
    inside = InProcess(house, monkeypatch)
    try:
        done = house.register("plain", house.image("plain"))
        assert done.code == 0, done
        assert house.cli("run", "plain", "--", "cat", "/which").out == "plain\n"
        yield Rigged(house, inside.provider)
    finally:
        inside.close()
        house.close()
    assert traces(str(house.root)) == set()
    assert shape() == before
