"""Which pools and nodes enforce what a Session asks for."""

from dataclasses import replace
from itertools import product

import pytest

from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Pool
from sandbay.domain.errors import Refusal
from sandbay.domain.ids import NodeId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.platform import Platform
from sandbay.domain.readiness import Readiness
from sandbay.domain.reasons import Reason
from sandbay.flow.enforce import Enforcing, enforce
from tests.flow.test_place import FROZEN

AMD = FROZEN.platform
D, E, R = Network.DISABLED, Network.ENABLED, Network.RESTRICTED
MAIN = Pool("main", "p", AMD)
OTHER = Pool("other", "q", AMD)
DECLARED = {"p": {D, E}, "q": {D}, "z": {D, E, R}}


def view(name: str, *networks: Network, pool: Pool = MAIN, online: bool = True) -> NodeView:
    node = Node(NodeId(name), name, pool.provider, "r", pool.platform, 4, dict(pool.node_selector))
    return NodeView(replace(node, networks=frozenset(networks)), online, 0, Readiness())


def said(pools: list[Pool], fleet: list[NodeView], *asked: Network) -> Enforcing | Refusal:
    return enforce(FROZEN, asked, iter(pools), iter(fleet), DECLARED)


def refusal(pools: list[Pool], fleet: list[NodeView], *asked: Network) -> Refusal:
    outcome = said(pools, fleet, *asked)
    assert isinstance(outcome, Refusal)
    assert (outcome.reason, outcome.param) == (Reason.NETWORK_UNSUPPORTED, "network")
    return outcome


def able(pools: list[Pool], fleet: list[NodeView], *asked: Network) -> tuple[list[str], list[str]]:
    outcome = said(pools, fleet, *asked)
    assert isinstance(outcome, Enforcing)
    return [pool.name for pool in outcome.pools], [it.node.name for it in outcome.fleet]


def test_a_node_counts_for_what_its_own_host_enforces() -> None:
    a, b = view("a", D), view("b", D, E)
    assert able([MAIN], [a, b], E) == (["main"], ["b"])
    assert able([MAIN], [a, b], D) == (["main"], ["a", "b"])
    assert refusal([MAIN], [a], E).details == {"network": [E], "offered": ["disabled"]}
    assert refusal([MAIN], [a, b], R).details == {"network": [R], "offered": ["disabled", "enabled"]}


def test_what_a_provider_does_not_declare_is_not_believed_of_its_node() -> None:
    assert refusal([OTHER], [view("a", D, E, pool=OTHER)], E).details["offered"] == ["disabled"]


def test_of_a_pool_without_nodes_the_declaration_is_all_that_is_known() -> None:
    assert able([MAIN, OTHER], [], E) == (["main"], [])
    refusal([OTHER], [], E)
    # A node that is away is known: it comes back with the host that it had.
    refusal([MAIN], [view("a", D, online=False)], E)


def test_the_setup_and_what_follows_need_one_node_that_enforces_both() -> None:
    """Two nodes that enforce one mode each are none that enforces two."""
    both = view("both", D, E)
    apart = [view("a", D), view("b", E)]
    assert able([MAIN], [*apart, both], D, E) == (["main"], ["both"])
    refusal([MAIN], apart, D, E)


def test_pools_stay_in_their_order_and_those_that_cannot_go() -> None:
    pools = [replace(MAIN, name=name, node_selector={"zone": name}) for name in "cab"]
    fleet = [view(pool.name, *(D, E)[: 1 + (pool.name != "a")], pool=pool) for pool in pools]
    assert able(pools, fleet, E) == (["c", "b"], ["c", "b"])
    assert able([*pools, OTHER], fleet, E)[0] == ["c", "b"]


@pytest.mark.parametrize("strange", [Pool("s", "z", AMD), Pool("s", "p", Platform("linux", "s390x"))])
def test_a_pool_that_cannot_run_the_image_offers_nothing(strange: Pool) -> None:
    """It may enforce the mode: the refusal is of the pools that could run it. With none of these, `place` says so."""
    assert refusal([strange, OTHER], [], E).details["offered"] == ["disabled"]
    assert able([strange], [], E) == (["s"], [])
    assert able([], [], R) == ([], [])


def test_every_cell() -> None:
    modes = [
        frozenset(m for m, there in zip((D, E, R), bits, strict=True) if there) for bits in product([0, 1], repeat=3)
    ]
    for declared, enforced, asked in product(modes, modes, modes[1:]):
        outcome = enforce(FROZEN, asked, [MAIN], [view("a", *enforced)], {"p": declared})
        assert isinstance(outcome, Enforcing) == (asked <= declared & enforced), (declared, enforced, asked)
