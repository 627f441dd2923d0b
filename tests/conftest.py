"""What every test may use. The markers are in pyproject.toml."""

import gc
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import reasons
from tests.support.leaks import real_sandboxes_or_skip
from tests.support.postgres import Server

E2E = Path(__file__).parent / "e2e"

# Where a property does not say itself how often it is tried. `./dev test --all` tries hypothesis' own number.
settings.register_profile("quick", max_examples=25)
settings.load_profile("quick")

pytest.register_assert_rewrite(
    "tests.contracts.provider_harness",
    *(f"tests.contracts.provider_{part}" for part in ("images", "allocations", "exec", "files", "confinement")),
)


def pytest_configure() -> None:
    """Whoever starts the tests with `nohup` would have every program that they start ignore SIGHUP, too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: at the end every core then has small things left."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, E2E not in item.path.parents))


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory to the end: the collector need not walk through them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def real_sandboxes() -> None:
    """Skip, saying what is missing, where this machine cannot run real sandboxes."""
    real_sandboxes_or_skip()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of the tests' own; skip, saying what is missing, where there is none to run."""
    server = Server()
    yield server
    server.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold `@pytest.mark.produces(Reason.X)` to its word: an answer of the API has named that reason."""
    reasons.seen.clear()
    result = yield
    missing = [reason for mark in item.iter_markers("produces") for reason in mark.args]
    assert [reason.value for reason in missing if reason.value not in reasons.seen] == []
    return result
