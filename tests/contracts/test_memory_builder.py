"""The builder of the use cases' tests keeps the contract, too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contracts.builder_suite import BuilderSuite
from tests.fakes.memory_builder import MemoryBuilder


class TestMemoryBuilder(BuilderSuite):
    @pytest.fixture
    def builder(self, tmp_path: Path) -> MemoryBuilder:
        return MemoryBuilder(tmp_path / "builds")

    @pytest.fixture
    def leftovers(self, tmp_path: Path) -> Callable[[], object]:
        return lambda: list((tmp_path / "builds").iterdir())
