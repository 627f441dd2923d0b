"""What a moved cell or the report of a check means for releases, channels, the default image and wishes.

A first proof makes a release active, and with it `stable`, a requested promotion and the first default image, in one
transaction. What promises tools is proved by a check (`app.contracts`) and not by a start alone.
"""

from collections.abc import Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import SYSTEM, Core
from sandbay.app.losses import losses, refusal_for
from sandbay.app.select import current_deployment
from sandbay.domain.catalog import ImageEntry, ReleaseEntry
from sandbay.domain.ids import NodeId
from sandbay.domain.impact import ChannelMoved
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import STABLE
from sandbay.domain.release import REJECTING, ContentKey, ReleaseState
from sandbay.domain.want import Why
from sandbay.flow.prove import Verdict, ready
from sandbay.ports.changes import AddWish, Change, DropWish, MoveChannel, MoveRelease, SetDeployment
from sandbay.ports.store import CatalogOf, VariantsOf

Held = tuple[ImageEntry, ReleaseEntry]


def consequences(core: Core, node: NodeId, key: ContentKey, readiness: Readiness) -> list[Change]:
    """What a moved cell means. A wish stays while a check is due: nothing may drop the bytes before."""
    if readiness.state is ReadinessState.READY:
        held = _holding(core, key)
        due = any(release.is_due(v) for _, release in held for v in release.release.variants if v.content_key == key)
        moves = [moved(core, it, ready(it[1].status, it[1].contract)) for it in held]
        return [*(change for changes in moves for change in changes), *([] if due else [DropWish(key, node)])]
    if readiness.state is ReadinessState.FAILED and readiness.fault and readiness.fault.reason in REJECTING:
        verdict = Verdict(ReleaseState.REJECTED, readiness.fault)
        pending = [it for it in _holding(core, key) if it[1].status.state is ReleaseState.PENDING]
        changes = [change for it in pending for change in moved(core, it, verdict)]
        return [*changes, DropWish(key, node)] if changes else []
    return []


def lost(core: Core, node: NodeId, key: ContentKey, readiness: Readiness) -> list[Change]:
    """What follows when a node says that bytes are damaged which it has proved once: it shall have them again."""
    fault = readiness.fault
    if readiness.state is not ReadinessState.FAILED or fault is None or fault.reason is not Reason.CONTENT_LOST:
        return []
    facts = {"content_key": key, "message": fault.message}
    return [AddWish(key, node, core.clock.now(), Why.CACHED), audit.done(core, SYSTEM, "readiness.lost", node, facts)]


def _holding(core: Core, key: ContentKey) -> Sequence[Held]:
    """The releases that have a variant with this content."""
    known = core.store.read(VariantsOf(frozenset({key})))
    catalog = core.store.read(CatalogOf(frozenset(v.image for v in known)))
    found = [(catalog.image(v.image), v.number) for v in known]
    return [(entry, entry.releases[number]) for entry, number in found if entry is not None]


def moved(core: Core, held: Held, verdict: Verdict | None) -> list[Change]:
    """Move the release, and what follows from it, when there is a verdict."""
    entry, release = held
    if verdict is None:
        return []
    before = frozenset({release.status.state})
    move = MoveRelease(release.release.id, before, verdict.to, verdict.fault)
    if verdict.to is ReleaseState.ACTIVE:
        return [move, *_proved(core, entry, release)]
    if verdict.fault is None:
        return [move]
    facts = {"reason": verdict.fault.reason.value}
    return [move, audit.done(core, SYSTEM, "release.reject", release.release.id, facts)]


def _proved(core: Core, entry: ImageEntry, held: ReleaseEntry) -> list[Change]:
    now, release = core.clock.now(), held.release
    changes: list[Change] = []
    for channel, expected in _channels(entry, release.number):
        asked = ChannelMoved(release.image, channel, release.number, held)
        lost = losses(core, asked) if channel in entry.channels else ()
        if lost:
            refusal = refusal_for(entry.image.name, asked, lost)
            changes.append(audit.held_back(core, SYSTEM, "channel.promote", release.image, refusal))
        else:
            why = "first proof"
            changes.append(MoveChannel(release.image, channel, release.number, expected, now, SYSTEM.principal, why))
    deployment = current_deployment(core)
    if deployment.default_image is None:
        first = replace(deployment, generation=deployment.generation + 1, default_image=release.image)
        changes.append(SetDeployment(first, deployment.generation))
    return [*changes, audit.done(core, SYSTEM, "release.activate", release.id)]


def _channels(entry: ImageEntry, number: int) -> list[tuple[str, int | None]]:
    """`stable` when there is none yet, and the channel that was asked for at registration."""
    asked = entry.releases[number].status.promote
    moves: list[tuple[str, int | None]] = [] if STABLE in entry.channels else [(STABLE, 0)]
    if asked is not None and asked != STABLE:
        moves.append((asked, None))
    elif asked == STABLE and STABLE in entry.channels:
        moves.append((STABLE, None))
    return moves
