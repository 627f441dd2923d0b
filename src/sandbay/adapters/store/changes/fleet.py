"""The deployment, nodes, and what they hold or should hold."""

from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, exists, insert, literal, or_, select, update

from sandbay.adapters.store.changes.dispatch import Writes
from sandbay.adapters.store.changes.guards import refuse_unless, value_there
from sandbay.adapters.store.queries.fleet import CURRENT_GENERATION, POOLS
from sandbay.adapters.store.rows import names_of, values_of
from sandbay.adapters.store.snapshot_tables import is_kept
from sandbay.adapters.store.tables import (
    allocations,
    deployments,
    frozen_releases,
    is_open,
    nodes,
    pins,
    readiness,
    release_states,
    sessions,
    snapshots,
    variants,
    wishes,
)
from sandbay.domain.deployment import Pool
from sandbay.domain.node import Node
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.release import ReleaseState
from sandbay.domain.session import FINAL, SessionState
from sandbay.ports.changes import (
    AddWish,
    Conflict,
    ConflictKind,
    DropWish,
    PutNode,
    PutReadiness,
    SeeNode,
    SetDeployment,
    Unpin,
)

_POOLS_IN_USE = (
    select(allocations.c.pool)
    .join(sessions, sessions.c.id == allocations.c.session)
    .where(or_(is_open, sessions.c.state.not_in(sorted(FINAL))))
    .distinct()
)


def _set_deployment(connection: Connection, change: SetDeployment) -> None:
    deployment = change.deployment
    current = connection.execute(CURRENT_GENERATION).scalar_one()
    refuse_unless(change.expected == current, current, change)
    if deployment.generation != current + 1:
        raise ValueError(f"generation {deployment.generation} cannot follow {current}")
    kinds = {pool.name: pool.provider for pool in deployment.pools}
    pools: tuple[Pool, ...] = connection.execute(POOLS).scalar() or ()
    touched = {pool.name for pool in pools if kinds.get(pool.name) != pool.provider}
    used = set(connection.execute(_POOLS_IN_USE).scalars()) & touched if touched else set()
    if used:
        raise Conflict(change, ConflictKind.IN_USE, tuple(sorted(used)))
    connection.execute(insert(deployments), values_of(deployment))


_EPOCH = select(nodes.c.epoch).where(nodes.c.id == bindparam("node"))
_this_node = nodes.c.id == bindparam("key")
_UPDATE_NODE = update(nodes).where(_this_node).values({n: bindparam(n) for n in names_of(Node) if n != "id"})
_SEE_NODE = update(nodes).where(_this_node).values(last_seen=bindparam("at"), warm=bindparam("warm"))


def _put_node(connection: Connection, change: PutNode) -> None:
    node = change.node
    stored = connection.execute(_EPOCH, {"node": node.id}).scalar()
    refuse_unless(node.epoch - 1 == (stored or 0), stored or 0, change)
    values = values_of(node)
    if stored is None:
        connection.execute(insert(nodes), values)
    else:
        connection.execute(_UPDATE_NODE, {**values, "key": node.id})


def _refuse_old_epoch(connection: Connection, change: SeeNode | PutReadiness) -> None:
    epoch = value_there(connection, _EPOCH, {"node": change.node}, change)
    refuse_unless(epoch == change.epoch, epoch, change)


def _see_node(connection: Connection, change: SeeNode) -> None:
    _refuse_old_epoch(connection, change)
    connection.execute(_SEE_NODE, {"key": change.node, "at": change.at, "warm": change.warm})


def _this_cell(table: Table) -> Any:
    return (table.c.node == bindparam("on")) & (table.c.content_key == bindparam("key"))


_ATTEMPT = select(readiness.c.attempt).where(_this_cell(readiness))
_UPDATE_CELL = update(readiness).where(_this_cell(readiness)).values({n: bindparam(n) for n in names_of(Readiness)})
_PINNED = select(pins.c.node).where(_this_cell(pins))
_WISHED = select(wishes.c.why).where(_this_cell(wishes))
_STRENGTHEN = update(wishes).where(_this_cell(wishes)).values(why=bindparam("stronger"))
_TO_BE_PROVED = (
    select(variants.c.release)
    .join(release_states, release_states.c.release == variants.c.release)
    .where(variants.c.content_key == bindparam("key"), release_states.c.state == ReleaseState.PENDING)
)
# A decision may be older than the newest such release, which nobody would ever prove without a wish.
_DROP_WISH = delete(wishes).where(_this_cell(wishes), ~exists(_TO_BE_PROVED))


def _cell(change: PutReadiness | Unpin | AddWish | DropWish) -> dict[str, Any]:
    return {"on": change.node, "key": change.key}


def _put_readiness(connection: Connection, change: PutReadiness) -> None:
    _refuse_old_epoch(connection, change)
    cell, row = _cell(change), {"node": change.node, "content_key": change.key}
    stored = connection.execute(_ATTEMPT, cell).scalar()
    refuse_unless(change.after_attempt in (None, stored or 0), stored or 0, change)
    values = values_of(change.readiness)
    if stored is None:
        connection.execute(insert(readiness), {**row, **values})
    else:
        connection.execute(_UPDATE_CELL, {**cell, **values})
    if change.readiness.state is ReadinessState.READY and connection.execute(_PINNED, cell).first() is None:
        connection.execute(insert(pins), row)


_UNPIN = delete(pins).where(_this_cell(pins))
_EVICT = (
    update(readiness)
    .where(_this_cell(readiness), readiness.c.state == ReadinessState.READY)
    .values(state=literal(ReadinessState.EVICTING, readiness.c.state.type))
)
_NEEDED_BY = (
    select(sessions.c.id)
    .select_from(sessions)
    .join(frozen_releases, frozen_releases.c.id == sessions.c.frozen)
    .outerjoin(allocations, (allocations.c.session == sessions.c.id) & is_open)
    .outerjoin(snapshots, (snapshots.c.session == sessions.c.id) & is_kept)
    .where(
        frozen_releases.c.content_key == bindparam("key"),
        or_(
            allocations.c.node == bindparam("on"),
            snapshots.c.node == bindparam("on"),
            sessions.c.state == SessionState.WAITING,
        ),
    )
    .limit(1)
)


def _unpin(connection: Connection, change: Unpin) -> None:
    cell = _cell(change)
    needed_by = connection.execute(_NEEDED_BY, cell).scalar()
    if needed_by is None and connection.execute(_WISHED, cell).first() is not None:
        needed_by = "a wish"
    if needed_by is not None:
        raise Conflict(change, ConflictKind.IN_USE, needed_by)
    connection.execute(_UNPIN, cell)
    connection.execute(_EVICT, cell)


def _add_wish(connection: Connection, change: AddWish) -> None:
    why, stored = int(change.why), connection.execute(_WISHED, _cell(change)).scalar()
    if stored is None:
        row = {"node": change.node, "content_key": change.key, "at": change.at, "why": why}
        connection.execute(insert(wishes), row)
    elif why < stored:
        connection.execute(_STRENGTHEN, {**_cell(change), "stronger": why})


def _drop_wish(connection: Connection, change: DropWish) -> None:
    connection.execute(_DROP_WISH, _cell(change))


WRITES: Writes = {
    AddWish: _add_wish,
    DropWish: _drop_wish,
    PutNode: _put_node,
    PutReadiness: _put_readiness,
    SeeNode: _see_node,
    SetDeployment: _set_deployment,
    Unpin: _unpin,
}
