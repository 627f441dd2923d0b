"""PostgreSQL: the whole suite of the port."""

from collections.abc import Callable

import pytest

from sandbay.adapters.store.postgresql import PostgresqlStore
from tests.contracts.store_suite import StoreSuite
from tests.support.postgres import Server


class TestPostgresqlStore(StoreSuite):
    @pytest.fixture
    def open_store(self, postgres: Server) -> Callable[[], PostgresqlStore]:
        url = postgres.emptied()
        return lambda: PostgresqlStore(url)
