"""The store port's contract as tests, for every database: subclass `StoreSuite` as `Test…` and give `open_store`."""

from sandbay.adapters.store.changes import WRITES
from sandbay.adapters.store.queries import ANSWERS
from sandbay.ports import changes, channels, lives, secrets, snapshots, standing, store
from tests.contracts.store_catalog_suite import CatalogSuite
from tests.contracts.store_channels_suite import ChannelsSuite
from tests.contracts.store_contracts_suite import ContractsSuite
from tests.contracts.store_fleet_suite import FleetSuite
from tests.contracts.store_publishes_suite import PublishesSuite
from tests.contracts.store_races_suite import RacesSuite
from tests.contracts.store_records_suite import RecordsSuite
from tests.contracts.store_sessions_suite import SessionsSuite
from tests.contracts.store_snapshots_suite import SnapshotsSuite
from tests.contracts.store_standing_suite import StandingSuite
from tests.contracts.store_templates_suite import TemplatesSuite


class StoreSuite(
    CatalogSuite,
    ChannelsSuite,
    ContractsSuite,
    FleetSuite,
    RecordsSuite,
    PublishesSuite,
    SessionsSuite,
    SnapshotsSuite,
    StandingSuite,
    TemplatesSuite,
    RacesSuite,
):
    """All of it."""

    def test_every_query_and_every_change_of_the_port_is_known(self) -> None:
        modules = (changes, channels, lives, secrets, snapshots, standing, store)
        kinds = {it for module in modules for it in vars(module).values() if isinstance(it, type)}
        assert set(WRITES) == {it for it in kinds if issubclass(it, changes.Change) and it is not changes.Change}
        assert set(ANSWERS) == {it for it in kinds if issubclass(it, store.Query) and it is not store.Query}
