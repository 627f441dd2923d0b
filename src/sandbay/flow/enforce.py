"""Step 2½. Pools and nodes that enforce the network modes a Session asks for, or the refusal that none does.

A pool's provider may declare a mode that the host of one of its nodes cannot enforce: what a node says of itself
counts. Of a pool without any node only the declaration is known, and unknown is not "no".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandbay.domain.declaration import Network
from sandbay.domain.deployment import Pool
from sandbay.domain.errors import Refusal
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.node import NodeView
from sandbay.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Enforcing:
    """What `place` may choose from."""

    pools: Sequence[Pool]
    fleet: Sequence[NodeView]


def enforce(
    frozen: FrozenRelease,
    asked: Collection[Network],
    pools: Iterable[Pool],
    fleet: Iterable[NodeView],
    declared: Mapping[str, Collection[Network]],
) -> Enforcing | Refusal:
    """`declared`: provider → the modes it enforces where the host lets it. All of `asked` have to be enforced."""
    wanted, pools, fleet = frozenset(asked), tuple(pools), tuple(fleet)
    offers = {pool.name: _offers(pool, fleet, declared) for pool in pools}
    able = [pool for pool in pools if any(wanted <= offer for offer in offers[pool.name])]
    fits = [pool for pool in pools if pool.provider in frozen.providers and pool.platform == frozen.platform]
    if fits and not any(pool in able for pool in fits):
        offered = sorted({mode.value for pool in fits for offer in offers[pool.name] for mode in offer})
        modes = " and ".join(sorted(mode.value for mode in wanted))
        facts = {"network": sorted(wanted), "offered": offered}
        message = f"no pool that can run it enforces network {modes}, only {', '.join(offered)}"
        return Refusal(Reason.NETWORK_UNSUPPORTED, message, "network", facts)
    return Enforcing(able, [view for view in fleet if wanted <= view.node.networks])


def _offers(
    pool: Pool, fleet: Iterable[NodeView], declared: Mapping[str, Collection[Network]]
) -> Sequence[frozenset[Network]]:
    """What each of its nodes enforces."""
    modes = frozenset(declared[pool.provider])
    members = [view.node.networks & modes for view in fleet if view.node.serves(pool)]
    return members or [modes]
