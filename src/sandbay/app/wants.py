"""What each node should hold: load the reasons, let `flow.want` decide, tell the nodes that are reachable."""

from collections.abc import Sequence

from sandbay.app.core import Core
from sandbay.app.select import current_deployment
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import NodeId
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Variant
from sandbay.domain.want import Wants
from sandbay.flow.want import want
from sandbay.ports.changes import AddWish
from sandbay.ports.node_link import Wanted
from sandbay.ports.store import Needs, Nodes, ReadinessRows, VariantsOf


def all_wants(core: Core) -> Wants:
    """Per node, from every reason there is now."""
    deployment = current_deployment(core)
    needs = core.store.read(Needs())
    known = core.store.read(VariantsOf(frozenset(n.key for n in needs)))
    runs = {v.variant.content_key: (v.variant.platform, v.variant.providers) for v in known}
    return want(deployment.pools, core.store.read(Nodes()), needs, runs)


def wanted_for(core: Core, node: NodeId) -> Wanted:
    """One node's set, with the variants behind its keys and behind what it has pinned."""
    items = all_wants(core).of(node)
    pinned = {row.key for row in core.store.read(ReadinessRows()) if row.node == node and row.pinned}
    keys = frozenset(items.reasons()) | pinned
    variants: dict[str, Variant] = {v.variant.content_key: v.variant for v in core.store.read(VariantsOf(keys))}
    return Wanted(items, {key: variants[key] for key in keys if key in variants})


def push_wants(core: Core, node: NodeId) -> bool:
    """Tell a node what to hold; False when it is away (it asks again when it is back)."""
    try:
        core.link.reach(node).want(wanted_for(core, node))
    except RefusedError as error:
        if error.refusal.reason is not Reason.NO_NODE_ONLINE:
            raise
        return False
    return True


def proof_wishes(core: Core, variants: Sequence[Variant]) -> list[AddWish]:
    """Each variant on one node that can run it; none where no pool supports it."""
    deployment = current_deployment(core)
    now = core.clock.now()
    wishes = []
    for variant in variants:
        pools = [p for p in deployment.pools if p.platform == variant.platform and p.provider in variant.providers]
        able = [n for n in core.store.read(Nodes()) if any(n.serves(p) for p in pools)]
        online = sorted(able, key=lambda n: (not n.online(now), n.name))
        wishes += [AddWish(ContentKey(variant.content_key), node.id, now) for node in online[:1]]
    return wishes
