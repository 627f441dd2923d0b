"""Image bytes on nodes: what there is, what keeps it there, and the grant to let it go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbay.app import audit
from sandbay.app.core import SYSTEM, Core
from sandbay.app.wants import wanted_for
from sandbay.domain.disk import Disk, HeldVariant, Kept, coming
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ImageId, NodeId
from sandbay.domain.node import Node
from sandbay.domain.readiness import Readiness
from sandbay.domain.release import ContentKey
from sandbay.domain.session import SessionState
from sandbay.flow.evict import NodeView, keep, make_room
from sandbay.ports.changes import Conflict, ConflictKind, Unpin
from sandbay.ports.node_link import Wanted
from sandbay.ports.records import KnownVariant, Page
from sandbay.ports.store import Nodes, ReadinessRows, Sessions, VariantsOf

_PAGE = 500


@dataclass(frozen=True)
class OnDisk:
    """One variant on one node. `kept` is why it may not go; None when it may. `unnamed`: no release has it."""

    held: HeldVariant
    releases: Sequence[KnownVariant]
    kept: Kept | None


@dataclass(frozen=True)
class NodeDisk:
    """One node. `disk` is None when it is away, or has no bytes of its own to let go.

    `next`: what goes at its next look, the longest unused first. `waiting`: what is not begun before there is room,
    with the bytes that it will most likely take.
    """

    node: Node
    disk: Disk | None = None
    variants: Sequence[OnDisk] = ()
    next: Sequence[ContentKey] = ()
    waiting: Sequence[tuple[KnownVariant, int]] = ()


def disks(core: Core) -> Sequence[NodeDisk]:
    """Every node, by name, as it is now."""
    return [_disk(core, node) for node in core.store.read(Nodes())]


def grant(core: Core, node: Node, keys: Sequence[ContentKey]) -> frozenset[ContentKey]:
    """End the pins of those that nothing needs on the node; which these were."""
    kept = _kept(core, node.id, wanted_for(core, node.id))
    return frozenset(key for key in keys if key not in kept and _unpinned(core, node, key))


def _unpinned(core: Core, node: Node, key: ContentKey) -> bool:
    known = core.store.read(VariantsOf(frozenset({key})))
    names = sorted(f"{it.image_name}:{it.number}" for it in known)
    subject: ImageId | ContentKey = known[0].image if known else key
    facts = {"releases": names, "node": node.id, "why": "room"}
    try:
        core.store.apply(Unpin(node.id, key), audit.done(core, SYSTEM, "image.evict", subject, facts))
    except Conflict as conflict:
        if conflict.kind is not ConflictKind.IN_USE:
            raise
        return False
    core.changed.set()
    return True


def _kept(core: Core, node: NodeId, wanted: Wanted) -> Mapping[ContentKey, Kept]:
    return keep(wanted.items, _cells(core, node), _waited_for(core))


def _cells(core: Core, node: NodeId) -> Mapping[ContentKey, Readiness]:
    return {row.key: row.readiness for row in core.store.read(ReadinessRows()) if row.node == node}


def _waited_for(core: Core) -> frozenset[ContentKey]:
    """By Sessions that have no node yet; it may be any."""
    waiting = core.store.read(Sessions(None, frozenset({SessionState.WAITING}), Page(limit=_PAGE)))
    return frozenset(record.frozen.content_key for record in waiting)


def _disk(core: Core, node: Node) -> NodeDisk:
    try:
        disk = core.link.reach(node.id).disk()
    except RefusedError:
        disk = None
    if disk is None:
        return NodeDisk(node)
    wanted = wanted_for(core, node.id)
    kept, cells = _kept(core, node.id, wanted), _cells(core, node.id)
    likely = {key: coming(it.layers) for key, it in wanted.variants.items()}
    room = make_room(NodeView(disk, wanted.items, cells, likely, _waited_for(core)), core.clock.now())
    known = core.store.read(VariantsOf(frozenset({it.key for it in disk.held}) | room.wait))
    by_key: dict[ContentKey, list[KnownVariant]] = {}
    for it in known:
        by_key.setdefault(it.variant.content_key, []).append(it)
    return NodeDisk(
        node=node,
        disk=disk,
        variants=[OnDisk(it, by_key.get(it.key, ()), kept.get(it.key)) for it in disk.held],
        next=room.go,
        waiting=[(it, sum(likely[key].likely.values())) for key in sorted(room.wait) for it in by_key.get(key, ())],
    )
