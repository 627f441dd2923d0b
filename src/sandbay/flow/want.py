"""Step 4, Core's half of preparing. Policies, Sessions and wishes → what each node should hold.

A required variant is wanted by every node whose pools can run it; a Session or a wish wants its variant
on one node. The strongest reason of several counts.
"""

from collections.abc import Iterable, Mapping

from sandbay.domain.deployment import Pool
from sandbay.domain.ids import NodeId
from sandbay.domain.node import Node
from sandbay.domain.platform import Platform
from sandbay.domain.release import ContentKey
from sandbay.domain.want import Need, WantedSet, Wants, Why

Runs = Mapping[ContentKey, tuple[Platform, tuple[str, ...]]]
"""Content key → its platform and the kinds of provider that can run it."""


def want(pools: Iterable[Pool], nodes: Iterable[Node], needs: Iterable[Need], runs: Runs) -> Wants:
    """What every node should hold; a need for a node that could not run it is no need."""
    needs, pools = tuple(needs), tuple(pools)
    return Wants({node.id: _of(node, pools, needs, runs) for node in nodes})


def _of(node: Node, pools: tuple[Pool, ...], needs: tuple[Need, ...], runs: Runs) -> WantedSet:
    strongest: dict[ContentKey, Why] = {}
    for need in needs:
        if not _concerns(need, node.id) or not _can_run(node, pools, runs.get(need.key)):
            continue
        strongest[need.key] = min(need.why, strongest.get(need.key, need.why))
    return WantedSet(tuple(sorted(strongest.items(), key=lambda item: (item[1], item[0]))))


def _concerns(need: Need, node: NodeId) -> bool:
    return need.node is None or need.node == node


def _can_run(node: Node, pools: tuple[Pool, ...], run: tuple[Platform, tuple[str, ...]] | None) -> bool:
    if run is None:
        return False
    platform, providers = run
    return any(node.serves(p) and p.platform == platform and p.provider in providers for p in pools)
