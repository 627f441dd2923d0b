"""The deployment, nodes, and what they hold or should hold."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, func, literal, null, select, union

from sandbay.adapters.store.queries.dispatch import Answers
from sandbay.adapters.store.rows import columns_of, noun
from sandbay.adapters.store.snapshot_tables import is_kept
from sandbay.adapters.store.tables import (
    allocations,
    channels,
    deployments,
    frozen_releases,
    is_open,
    nodes,
    pins,
    promotions,
    readiness,
    releases,
    snapshots,
    variants,
    wishes,
)
from sandbay.domain.deployment import Deployment
from sandbay.domain.node import Node, NodeView
from sandbay.domain.readiness import Readiness
from sandbay.domain.reference import STABLE
from sandbay.domain.want import Need, Why
from sandbay.ports.records import ReadinessRow
from sandbay.ports.store import Fleet, Needs, Nodes, ReadinessRows, TheDeployment

CURRENT_GENERATION = select(func.coalesce(func.max(deployments.alias().c.generation), 0))
_current = deployments.c.generation == CURRENT_GENERATION.scalar_subquery()
POOLS = select(deployments.c.pools).where(_current)
_DEPLOYMENT = select(*columns_of(Deployment, deployments)).where(_current)

_NODE, _READINESS = columns_of(Node, nodes), columns_of(Readiness, readiness)
_active = select(func.count()).where(allocations.c.node == nodes.c.id, is_open).scalar_subquery()
_NODES = select(*_NODE).order_by(nodes.c.name, nodes.c.id)
_FLEET = (
    select(_active, *_NODE, *_READINESS)
    .select_from(nodes)
    .outerjoin(readiness, (readiness.c.node == nodes.c.id) & (readiness.c.content_key == bindparam("key")))
    .order_by(nodes.c.name, nodes.c.id)
)

_pinned = (pins.c.node == readiness.c.node) & (pins.c.content_key == readiness.c.content_key)
_CELLS = (
    select(readiness.c.node, readiness.c.content_key, pins.c.node.is_not(None), *_READINESS)
    .select_from(readiness)
    .outerjoin(pins, _pinned)
    .order_by(readiness.c.content_key, readiness.c.node)
)
_CELLS_OF_ONE = _CELLS.where(readiness.c.content_key == bindparam("key"))


def _why(value: Why) -> ColumnElement[int]:
    return literal(int(value)).label("why")


_required = (
    select(variants.c.content_key, _why(Why.REQUIRED), null().label("node"))
    .select_from(variants)
    .join(releases, releases.c.id == variants.c.release)
    .join(channels, (channels.c.image == releases.c.image) & (channels.c.number == releases.c.number))
    .join(deployments, deployments.c.default_image == channels.c.image)
    .where(channels.c.name == STABLE, _current)
)

_to_be_promoted = (
    select(variants.c.content_key, _why(Why.REQUIRED), null().label("node"))
    .select_from(promotions)
    .join(releases, (releases.c.image == promotions.c.image) & (releases.c.number == promotions.c.number))
    .join(variants, variants.c.release == releases.c.id)
    .where(promotions.c.outcome.is_(None))
)

_held_by_sessions = (
    select(frozen_releases.c.content_key, _why(Why.SESSION), allocations.c.node)
    .select_from(allocations)
    .join(frozen_releases, frozen_releases.c.id == allocations.c.frozen)
    .where(is_open)
)

_suspended = (
    select(frozen_releases.c.content_key, _why(Why.SESSION), snapshots.c.node)
    .select_from(snapshots)
    .join(frozen_releases, frozen_releases.c.id == snapshots.c.frozen)
    .where(is_kept)
)

_wished = select(wishes.c.content_key, wishes.c.why, wishes.c.node)

_NEEDS = union(_required, _to_be_promoted, _held_by_sessions, _suspended, _wished).order_by(
    "why", "content_key", "node"
)


def _the_deployment(connection: Connection, _: TheDeployment) -> Deployment | None:
    row = connection.execute(_DEPLOYMENT).first()
    return None if row is None else noun(Deployment, row)


def _nodes(connection: Connection, _: Nodes) -> Sequence[Node]:
    return tuple(noun(Node, row) for row in connection.execute(_NODES))


def _fleet(connection: Connection, query: Fleet) -> Sequence[NodeView]:
    views = []
    for row in connection.execute(_FLEET, {"key": query.key}):
        node = noun(Node, row, 1)
        at = 1 + len(_NODE)
        cell = Readiness() if row[at] is None else noun(Readiness, row, at)
        views.append(NodeView(node, node.online(query.now), row[0], cell))
    return tuple(views)


def _readiness_rows(connection: Connection, query: ReadinessRows) -> Sequence[ReadinessRow]:
    rows = connection.execute(_CELLS) if query.key is None else connection.execute(_CELLS_OF_ONE, {"key": query.key})
    return tuple(ReadinessRow(row[0], row[1], noun(Readiness, row, 3), row[2]) for row in rows)


def _needs(connection: Connection, _: Needs) -> Sequence[Need]:
    return tuple(Need(key, Why(why), node) for key, why, node in connection.execute(_NEEDS))


ANSWERS: Answers = {
    Fleet: _fleet,
    Needs: _needs,
    Nodes: _nodes,
    ReadinessRows: _readiness_rows,
    TheDeployment: _the_deployment,
}
