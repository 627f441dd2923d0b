"""The network's subnet, nameservers and denied ranges, as values."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from sandbay.adapters.providers.oci import network_rules

METADATA = ["169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16"]


@pytest.mark.parametrize("address", [*METADATA, "127.0.0.53", "224.0.0.251", "255.255.255.255", "0.0.0.1"])
def test_ranges_that_hold_an_address_nobody_may_reach(address: str) -> None:
    assert any(IPv4Address(address) in IPv4Network(each) for each in network_rules.DENIED)


def test_subnets_overlap_nothing_that_the_host_routes() -> None:
    first = network_rules.free_subnet("a", [])
    assert first is not None
    again = network_rules.free_subnet("a", [str(first.network_address + 9)])
    assert again is not None
    assert not again.overlaps(first)
    elsewhere = network_rules.free_subnet("a", ["198.18.0.0/15"])
    assert elsewhere is not None
    assert elsewhere.subnet_of(IPv4Network("10.128.0.0/9"))
    assert network_rules.free_subnet("a", ["0.0.0.0/0"]) is None
    for pools in ([], ["198.18.0.0/15"], ["198.18.0.0/15", "10.0.0.0/8"]):
        found = network_rules.free_subnet("b", pools)
        assert found is not None
        assert any(found.subnet_of(IPv4Network(each)) for each in network_rules.DENIED)


def test_nameservers_that_a_sandbox_can_ask() -> None:
    stub = "nameserver 127.0.0.53\noptions edns0\n"
    real = "search example.org\nnameserver fd00::1\nnameserver 192.0.2.1\nnameserver nonsense\nnameserver\n"
    assert network_rules.nameservers(stub, real) == ("192.0.2.1",)
    assert network_rules.nameservers(real, stub) == ("192.0.2.1",)
    assert network_rules.nameservers(stub) == ()
    many = "".join(f"nameserver 192.0.2.{number}\n" for number in range(1, 6))
    assert network_rules.nameservers(many) == ("192.0.2.1", "192.0.2.2", "192.0.2.3")
