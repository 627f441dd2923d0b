"""Try again at once what failed on a node: because somebody asks, or because what it failed on is mended.

A fault of content is not tried again by itself: the bytes would be the same. They are others once the blob that was
damaged has been written or read whole, and then nobody has to ask. What the command finds failed no more it leaves.
"""

from collections import defaultdict
from collections.abc import Callable, Collection

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.wants import push_wants
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import NodeId
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault
from sandbay.domain.verification import DAMAGE
from sandbay.ports.records import ReadinessRow
from sandbay.ports.store import ReadinessRows


def try_again(core: Core, actor: Actor, nodes: Collection[NodeId], keys: Collection[ContentKey]) -> None:
    """Have these nodes prepare again what of these variants has failed there, whatever it waits for."""
    _retry(core, actor, "asked", lambda row: row.node in nodes and row.key in keys)


def blobs_are_whole(core: Core, actor: Actor, digests: Collection[str], why: str) -> None:
    """Have every node prepare again what failed there on one of these blobs, whichever image needs it."""
    if digests:
        _retry(core, actor, why, lambda row: _damaged(row.readiness.fault) in digests)


def _damaged(fault: Fault | None) -> object:
    """The digest of the blob that a node found damaged, or None."""
    return fault.details.get("digest") if fault is not None and fault.reason in DAMAGE else None


def _retry(core: Core, actor: Actor, why: str, is_meant: Callable[[ReadinessRow], bool]) -> None:
    rows = core.store.read(ReadinessRows())
    meant: dict[NodeId, list[ContentKey]] = defaultdict(list)
    for row in rows:
        if row.readiness.state is ReadinessState.FAILED and is_meant(row):
            meant[row.node].append(row.key)
    if meant:
        facts = [(node, {"content_keys": keys, "why": why}) for node, keys in meant.items()]
        core.store.apply(*(audit.done(core, actor, "readiness.retry", node, fact) for node, fact in facts))
    for node, keys in meant.items():
        _tell(core, node, keys)


def _tell(core: Core, node: NodeId, keys: Collection[ContentKey]) -> None:
    """A node that is away begins anew when it is back."""
    if not push_wants(core, node):
        return
    try:
        commands = core.link.reach(node)
    except RefusedError as error:
        if error.refusal.reason is not Reason.NO_NODE_ONLINE:
            raise
        return
    for key in keys:
        commands.retry(key)
