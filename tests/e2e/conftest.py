"""Real installations for the end-to-end tests. Nothing of them is left on the host afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.example_images import build
from tests.e2e.installation import Installation
from tests.e2e.rigged import InProcess, Rigged


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever needs the example images may be the one who builds them, or waits for who does."""
    for item in items:
        if isinstance(item, pytest.Function) and "layouts" in item.fixturenames:
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(scope="session", autouse=True)
def _able(real_sandboxes: None) -> None:
    """Every test here starts real sandboxes."""


@pytest.fixture(scope="session")
def layouts() -> Path:
    """A layout of each example image; unchanged ones are not built again."""
    return build()


@pytest.fixture(scope="session")
def house() -> Iterator[Installation]:
    """A running installation with a healthy default image `plain` beside whatever a test does."""
    it = Installation()
    try:
        it.up()
        done = it.register("plain", it.image("plain"))
        assert done.code == 0, done
        yield it
    finally:
        it.close()


@pytest.fixture
def rigged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rigged]:
    """An installation in this process with a provider that can be told to misbehave; `plain` has run once."""
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
