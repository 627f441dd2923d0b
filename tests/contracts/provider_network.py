"""Provider suite: a sandbox whose network changes with the end of its initialisation."""

import pytest

from sandbay.domain.declaration import Network
from sandbay.domain.ids import AllocationId
from sandbay.domain.reasons import Reason
from tests.contracts.provider_harness import ProviderHarness, Sandbox, order_for, refused, silent, start

UNKNOWN = AllocationId("alo_" + "y" * 20)
ENABLED, DISABLED, RESTRICTED = Network.ENABLED, Network.DISABLED, Network.RESTRICTED


def _interfaces(sandbox: Sandbox) -> set[str]:
    return {line.partition(":")[0].strip() for line in sandbox.run("cat", "/proc/net/dev").lines[2:]}


def _has_network(sandbox: Sandbox) -> bool:
    interfaces = _interfaces(sandbox)
    assert "lo" in interfaces
    return len(interfaces) > 1


def _able_or_skip(harness: ProviderHarness) -> None:
    if ENABLED not in harness.provider.declaration.networks:
        pytest.skip("this machine cannot give sandboxes a network")


class NetworkSuite:
    @pytest.mark.parametrize("first, then", [(ENABLED, DISABLED), (DISABLED, ENABLED)])
    def test_the_setup_has_a_network_of_its_own(self, harness: ProviderHarness, first: Network, then: Network) -> None:
        _able_or_skip(harness)
        beside = start(harness, harness.variants.web, network=ENABLED)
        sandbox = start(harness, harness.variants.web, network=then, setup_network=first)
        for mode in (first, first, then, then, first, then):
            harness.provider.set_network(sandbox.allocation, mode)
            assert _has_network(sandbox) == (mode is ENABLED)
            assert _has_network(beside)
        harness.restart()
        assert _has_network(sandbox) == (then is ENABLED)
        harness.provider.set_network(sandbox.allocation, then)
        assert _has_network(sandbox) == (then is ENABLED)
        harness.provider.set_network(beside.allocation, ENABLED)
        assert _has_network(beside)

    def test_the_setup_starts_with_its_network(self, harness: ProviderHarness) -> None:
        _able_or_skip(harness)
        for network in (ENABLED, DISABLED):
            for setup in (None, ENABLED, DISABLED):
                sandbox = start(harness, harness.variants.web, network=network, setup_network=setup)
                assert _has_network(sandbox) == ((setup or network) is ENABLED)
                harness.provider.destroy(sandbox.allocation)
        assert list(harness.provider.list_allocations()) == []

    def test_creating_again_leaves_the_network_as_it_is(self, harness: ProviderHarness) -> None:
        _able_or_skip(harness)
        harness.provider.prepare(harness.variants.web, silent)
        order = order_for(harness.variants.web, network=DISABLED, setup_network=ENABLED)
        harness.provider.create(order)
        harness.provider.set_network(order.allocation, DISABLED)
        harness.provider.create(order)
        assert not _has_network(Sandbox(harness, order.allocation))

    def test_a_network_that_the_order_does_not_name_is_refused(self, harness: ProviderHarness) -> None:
        sandbox = start(harness, harness.variants.web)
        for mode in (ENABLED, RESTRICTED):
            with refused(Reason.NETWORK_UNSUPPORTED):
                harness.provider.set_network(sandbox.allocation, mode)
        harness.provider.set_network(sandbox.allocation, DISABLED)
        assert not _has_network(sandbox)

    def test_a_setup_whose_network_cannot_be_enforced_is_refused(self, harness: ProviderHarness) -> None:
        harness.provider.prepare(harness.variants.web, silent)
        for asked in (
            {"setup_network": Network.RESTRICTED},
            {"network": Network.RESTRICTED, "setup_network": DISABLED},
        ):
            with refused(Reason.NETWORK_UNSUPPORTED):
                harness.provider.create(order_for(harness.variants.web, **asked))
        assert list(harness.provider.list_allocations()) == []

    def test_what_does_not_run_has_no_network_to_change(self, harness: ProviderHarness) -> None:
        ended = start(harness, harness.variants.web)
        harness.kill(ended.allocation)
        for allocation in (UNKNOWN, ended.allocation):
            with refused(Reason.NOT_RUNNING):
                harness.provider.set_network(allocation, DISABLED)
