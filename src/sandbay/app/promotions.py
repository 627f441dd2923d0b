"""Gated promotions: begun by a request, settled by the reconciler, in whichever process looks first.

The channel moves in the transaction that gives the promotion its outcome: whoever dies before it leaves the channel
where it was and the promotion waiting, and the next pass decides again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sandbay.app import audit
from sandbay.app.access import revision_stale
from sandbay.app.channels import Move, check_losses, check_name, check_target
from sandbay.app.core import SYSTEM, Actor, Core
from sandbay.app.images import find_image, find_release
from sandbay.app.select import current_deployment
from sandbay.domain.catalog import ImageEntry, ReleaseEntry
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import NodeId, PromotionId
from sandbay.domain.node import NodeView
from sandbay.domain.promotion import Promotion, PromotionOutcome
from sandbay.domain.reasons import Reason
from sandbay.domain.release import Fault, Release
from sandbay.flow.promote import Fails, PromotionView, Settles, Waits, progress, promote
from sandbay.ports.changes import Change, Conflict, ConflictKind, MoveChannel
from sandbay.ports.channels import AddPromotion, EndPromotion, PromotionOf, Promotions, WaitingPromotions
from sandbay.ports.records import Page
from sandbay.ports.store import Fleet


@dataclass(frozen=True)
class Gate:
    """On how many nodes the release has to be ready (None: every one that can run it), and for how long it may take."""

    nodes: int | None
    patience: timedelta


@dataclass(frozen=True)
class PromotionState:
    """A promotion, and how far it is while it waits: the nodes that can run the release, with its bytes on them."""

    entry: ImageEntry
    promotion: Promotion
    nodes: Sequence[NodeView] = ()
    waits: Waits | None = None


def begin(core: Core, actor: Actor, name_or_id: str, move: Move, gate: Gate) -> PromotionState:
    """Move a channel as soon as enough nodes are ready for the release. A channel has one such promotion at a time."""
    check_name(move.channel)
    entry = find_image(core, name_or_id)
    check_target(core, entry, find_release(entry, move.number))
    check_losses(core, entry, move)
    pointer, now = entry.channels.get(move.channel), core.clock.now()
    revision = pointer.revision if pointer else 0
    promotion = Promotion(
        id=PromotionId(core.ids.new("promotion")),
        image=entry.image.id,
        channel=move.channel,
        number=move.number,
        before=pointer.number if pointer else None,
        expected=revision if move.expected_revision is None else move.expected_revision,
        nodes=gate.nodes,
        deadline=now + gate.patience,
        created_at=now,
        principal=actor.principal,
        why=move.why,
        force=move.force,
    )
    try:
        core.store.apply(
            AddPromotion(promotion), audit.done(core, actor, "promotion.begin", entry.image.id, _facts(promotion))
        )
    except Conflict as conflict:
        raise _refusal(move, conflict) from conflict
    core.changed.set()
    return _state(core, entry, promotion)


def find_promotion(core: Core, name_or_id: str, promotion: str) -> PromotionState:
    """One of an image's, or `not_found`."""
    entry = find_image(core, name_or_id)
    found = core.store.read(PromotionOf(PromotionId(promotion)))
    if found is None or found.image != entry.image.id:
        raise RefusedError(Reason.NOT_FOUND, f"{entry.image.name} has no promotion {promotion}")
    return _state(core, entry, found)


def list_promotions(core: Core, name_or_id: str, page: Page) -> Sequence[PromotionState]:
    """An image's, newest first."""
    entry = find_image(core, name_or_id)
    return [_state(core, entry, it) for it in core.store.read(Promotions(entry.image.id, page))]


def abort(core: Core, actor: Actor, name_or_id: str, promotion: str) -> PromotionState:
    """End it; the channel stays where it is. Harmless when it was aborted already."""
    there = find_promotion(core, name_or_id, promotion)
    if there.promotion.outcome is None:
        ended = _ended(core, actor, there.promotion, PromotionOutcome.ABORTED)
        try:
            core.store.apply(*ended)
        except Conflict as conflict:
            if conflict.kind is not ConflictKind.STALE:
                raise
        core.changed.set()
        there = find_promotion(core, name_or_id, promotion)
    outcome = there.promotion.outcome
    if outcome is not None and outcome is not PromotionOutcome.ABORTED:
        details = {"outcome": outcome.value}
        raise RefusedError(Reason.ALREADY_ENDED, f"it is {outcome.value} already", details=details)
    return there


def settle_promotions(core: Core) -> None:
    """Give an outcome to every promotion that has come to one."""
    for promotion in core.store.read(WaitingPromotions()):
        changes = _outcome(core, promotion)
        if not changes:
            continue
        try:
            core.store.apply(*changes)
        except Conflict:
            continue  # somebody moved the channel or ended it meanwhile; the next pass looks again
        core.changed.set()


def _outcome(core: Core, promotion: Promotion) -> Sequence[Change]:
    entry = find_image(core, promotion.image)
    held = find_release(entry, promotion.number)
    pointer = entry.channels.get(promotion.channel)
    view = PromotionView(
        promotion,
        now=core.clock.now(),
        revision=pointer.revision if pointer else 0,
        unfit=_unfit(core, entry, held),
        nodes=tuple(_nodes(core, held.release)),
    )
    match promote(view):
        case Fails(fault):
            return _ended(core, SYSTEM, promotion, PromotionOutcome.FAILED, fault)
        case Settles():
            return _settled(core, entry, promotion)
        case Waits():
            return ()


def _settled(core: Core, entry: ImageEntry, it: Promotion) -> Sequence[Change]:
    """Templates may have been written since it began: who would lose by it now is asked once more."""
    try:
        check_losses(core, entry, Move(it.channel, it.number, force=it.force))
    except RefusedError as error:
        return _ended(core, SYSTEM, it, PromotionOutcome.FAILED, _fault(error))
    move = MoveChannel(it.image, it.channel, it.number, it.expected, core.clock.now(), it.principal, it.why)
    return (move, *_ended(core, SYSTEM, it, PromotionOutcome.SETTLED))


def _fault(error: RefusedError) -> Fault:
    return Fault(error.refusal.reason, error.refusal.message, error.refusal.details)


def _unfit(core: Core, entry: ImageEntry, held: ReleaseEntry) -> Fault | None:
    try:
        check_target(core, entry, held)
    except RefusedError as error:
        return _fault(error)
    return None


def _ended(
    core: Core, actor: Actor, promotion: Promotion, outcome: PromotionOutcome, fault: Fault | None = None
) -> Sequence[Change]:
    end = EndPromotion(promotion.id, outcome, core.clock.now(), actor.principal, fault)
    facts = {**_facts(promotion), "begun_by": promotion.principal, "reason": fault.reason.value if fault else None}
    return (end, audit.done(core, actor, f"promotion.{outcome.value}", promotion.image, facts))


def _facts(it: Promotion) -> dict[str, object]:
    what = {"promotion": it.id, "channel": it.channel, "from": it.before, "to": it.number}
    return {**what, "nodes": it.nodes, "deadline": it.deadline.isoformat(), "why": it.why, "force": it.force}


def _refusal(move: Move, conflict: Conflict) -> RefusedError:
    if conflict.kind is ConflictKind.TAKEN:
        message = f"a promotion of {move.channel} is under way; wait for it or abort it"
        return RefusedError(Reason.IN_USE, message, param="channel", details={"by": [conflict.current]})
    return revision_stale(conflict)


def _state(core: Core, entry: ImageEntry, promotion: Promotion) -> PromotionState:
    if promotion.outcome is not None:
        return PromotionState(entry, promotion)
    nodes = _nodes(core, find_release(entry, promotion.number).release)
    return PromotionState(entry, promotion, nodes, progress(promotion, tuple(nodes)))


def _nodes(core: Core, release: Release) -> Sequence[NodeView]:
    """Those that can run it, by name, each with what it says of the variant that it would run."""
    pools, now = current_deployment(core).pools, core.clock.now()
    found: dict[NodeId, NodeView] = {}
    for variant in release.variants:
        able = [it for it in pools if it.platform == variant.platform and it.provider in variant.providers]
        for view in core.store.read(Fleet(variant.content_key, now)):
            if any(view.node.serves(pool) for pool in able):
                told = core.progress.get((view.node.id, variant.content_key))
                found[view.node.id] = view if told is None else replace(view, readiness=told)
    return sorted(found.values(), key=lambda view: (view.node.name, view.node.id))
