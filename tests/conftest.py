"""What every test may use. The markers are in pyproject.toml."""

import pytest

from tests.support.leaks import real_sandboxes_or_skip

pytest.register_assert_rewrite(
    "tests.contracts.provider_harness",
    *(f"tests.contracts.provider_{part}" for part in ("images", "allocations", "exec", "files", "confinement")),
)


@pytest.fixture(scope="session")
def real_sandboxes() -> None:
    """Skip, saying what is missing, where this machine cannot run real sandboxes."""
    real_sandboxes_or_skip()
