"""What nodes hold of an image: show it, want it ahead of need, let it go."""

from collections.abc import Sequence
from dataclasses import dataclass

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.images import find_image, find_release, list_images, stable_or
from sandbay.app.retry import try_again
from sandbay.app.wants import push_wants
from sandbay.domain.catalog import ImageEntry
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import NodeId
from sandbay.domain.node import Node, NodeView
from sandbay.domain.readiness import Readiness
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Release
from sandbay.domain.want import Why
from sandbay.ports.changes import AddWish, Conflict, ConflictKind, DropWish, Unpin
from sandbay.ports.records import ReadinessRow
from sandbay.ports.store import Fleet, Needs, Nodes, ReadinessRows


@dataclass(frozen=True)
class Holding:
    """One node × one variant of the image; `readiness` with the bytes of a prepare under way."""

    node: Node
    number: int
    key: ContentKey
    readiness: Readiness
    pinned: bool


@dataclass(frozen=True)
class Eviction:
    """What became of one holding: gone, or kept and why."""

    holding: Holding
    kept: str | None


_NOTHING = ContentKey("")


def list_nodes(core: Core) -> Sequence[NodeView]:
    """Every node with its load; the readiness in these views is of nothing."""
    return core.store.read(Fleet(_NOTHING, core.clock.now()))


def holdings(core: Core, entry: ImageEntry) -> Sequence[Holding]:
    """Every node × every variant; what is not there is `absent`."""
    return [holding for _, holding in _cells(core, [entry])]


def matrix(core: Core) -> Sequence[tuple[ImageEntry, Holding]]:
    """The holdings of every image."""
    return _cells(core, list_images(core))


def _cells(core: Core, entries: Sequence[ImageEntry]) -> list[tuple[ImageEntry, Holding]]:
    nodes = core.store.read(Nodes())
    rows = {(row.node, row.key): row for row in core.store.read(ReadinessRows())}
    return [
        (entry, _holding(core, node, held.release.number, variant.content_key, rows))
        for entry in entries
        for held in entry.releases.values()
        for variant in held.release.variants
        for node in nodes
    ]


def _holding(
    core: Core, node: Node, number: int, key: ContentKey, rows: dict[tuple[NodeId, ContentKey], ReadinessRow]
) -> Holding:
    row = rows.get((node.id, key))
    readiness = core.progress.get((node.id, key)) or (row.readiness if row else Readiness())
    return Holding(node, number, key, readiness, pinned=row.pinned if row else False)


def preload(core: Core, actor: Actor, name_or_id: str, number: int | None, node: str | None) -> None:
    """Wish for a release on a node, or on every node that is there; what has failed there is tried again at once."""
    entry = find_image(core, name_or_id)
    release = stable_or(entry, number).release
    now = core.clock.now()
    keys, nodes = _keys(release), [target.id for target in targets(core, node)]
    wishes = [AddWish(key, target, now, Why.CACHED) for key in keys for target in nodes]
    facts = {"release": f"{entry.image.name}:{release.number}", "nodes": [w.node for w in wishes]}
    core.store.apply(*wishes, audit.done(core, actor, "image.preload", entry.image.id, facts))
    core.changed.set()
    try_again(core, actor, nodes, keys)


def _keys(release: Release) -> list[ContentKey]:
    return [v.content_key for v in release.variants]


def targets(core: Core, node: str | None) -> list[Node]:
    """The node of this name or id, or all of them. Refuses with `not_found`."""
    nodes = core.store.read(Nodes())
    if node is None:
        return list(nodes)
    found = [n for n in nodes if node in (n.id, n.name)]
    if not found:
        raise RefusedError(Reason.NOT_FOUND, f"there is no node {node}", param="node")
    return found


def evict(core: Core, actor: Actor, name_or_id: str, number: int | None, node: str | None) -> Sequence[Eviction]:
    """Drop an image's releases, or one of them, from nodes. What something needs is kept and says why."""
    entry = find_image(core, name_or_id)
    if number is not None:
        find_release(entry, number)
    on = {n.id for n in targets(core, node)}
    required = {need.key for need in core.store.read(Needs()) if need.why is Why.REQUIRED}
    mine = [h for h in holdings(core, entry) if h.node.id in on and number in (None, h.number) and h.pinned]
    return [_evict(core, actor, entry, holding, required) for holding in mine]


def _evict(core: Core, actor: Actor, entry: ImageEntry, holding: Holding, required: set[ContentKey]) -> Eviction:
    if holding.key in required:
        return Eviction(holding, "the default image is required on every node")
    key, node = holding.key, holding.node.id
    facts = {"release": f"{entry.image.name}:{holding.number}", "node": node}
    try:
        core.store.apply(
            DropWish(key, node), Unpin(node, key), audit.done(core, actor, "image.evict", entry.image.id, facts)
        )
    except Conflict as conflict:
        if conflict.kind is not ConflictKind.IN_USE:
            raise
        return Eviction(holding, f"a Session needs it: {conflict.current}")
    core.changed.set()
    if push_wants(core, node):
        core.link.reach(node).drop(key, holding.readiness.attempt)
    return Eviction(holding, None)
