"""What every part of the store's suite starts from."""

from collections.abc import Callable, Iterator

import pytest

from sandbay.ports.store import Store
from tests.contracts.store_things import install

Open = Callable[[], Store]


class StoreContract:
    """A subclass gives `open_store`, which opens one and the same database, at first empty."""

    @pytest.fixture
    def open_store(self) -> Open:
        raise NotImplementedError

    @pytest.fixture
    def empty(self, open_store: Open) -> Iterator[Store]:
        store = open_store()
        yield store
        store.close()

    @pytest.fixture
    def store(self, empty: Store) -> Store:
        """With a small installation in it."""
        install(empty)
        return empty
