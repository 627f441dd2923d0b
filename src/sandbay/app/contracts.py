"""Contract checks: ask for one, have a node do it, settle what it saw.

Asking writes a row and a wish; the reconciler tells a node that is ready for the variant, again and again until a
report answers the row. So a check outlives a crash of Core, of the node, or of both.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import SYSTEM, Actor, Core
from sandbay.app.images import find_image, find_release
from sandbay.app.proofs import moved
from sandbay.app.wants import proof_wishes
from sandbay.domain.catalog import ImageEntry, ReleaseEntry
from sandbay.domain.contract import Checked, CheckOrder, Contract
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import NodeId
from sandbay.domain.node import Node
from sandbay.domain.readiness import ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Fault, ReleaseState
from sandbay.flow.prove import asked_again, reported
from sandbay.ports.changes import AddReport, Conflict, SetContract
from sandbay.ports.node_link import CheckOutcome
from sandbay.ports.records import ReportRow
from sandbay.ports.store import CatalogOf, DueChecks, Needs, Nodes, ReadinessRows, ReportsOf

_TRIES = 5


def check_release(core: Core, actor: Actor, name_or_id: str, number: int) -> ReleaseEntry:
    """Ask for a check of what the release promises. While one is under way, that one answers."""
    for _ in range(_TRIES):
        entry = find_image(core, name_or_id)
        held = find_release(entry, number)
        if all(held.is_due(variant) for variant in held.release.variants):
            return held
        if ask_check(core, actor, entry, held, held.contract.tools):
            return find_release(find_image(core, name_or_id), number)
    raise RefusedError(Reason.REVISION_STALE, f"{name_or_id}:{number} keeps changing; try again")


def ask_check(core: Core, actor: Actor, entry: ImageEntry, held: ReleaseEntry, tools: Mapping[str, str]) -> bool:
    """Let the release promise these tools and have them checked. False when somebody else was faster.

    A release that was rejected for its contract is pending again; one rejected for its bytes stays what it is.
    """
    opened = asked_again(held.status)
    name, release = f"{entry.image.name}:{held.release.number}", held.release
    if held.status.state is ReleaseState.REJECTED and opened is None:
        raise RefusedError(Reason.RELEASE_REJECTED, f"{name} was rejected: its bytes are at fault")
    contract = Contract(dict(tools), held.contract.checks + 1)
    facts = {"release": name, "tools": contract.tools, "check": contract.checks}
    try:
        core.store.apply(
            SetContract(release.id, contract),
            *moved(core, (entry, held), opened),
            *proof_wishes(core, release.variants),
            audit.done(core, actor, "release.check", release.id, facts),
        )
    except Conflict:
        return False
    core.changed.set()
    return True


def reports_of(core: Core, held: ReleaseEntry) -> Sequence[ReportRow]:
    """What every check of the release saw, newest first."""
    return core.store.read(ReportsOf(held.release.id))


def trouble_of(core: Core, held: ReleaseEntry) -> Fault | None:
    """Why the last try of a check that is due saw nothing, as far as this Core has heard."""
    due = [variant.content_key for variant in held.release.variants if held.is_due(variant)]
    faults = (core.check_faults.get((held.release.id, key)) for key in due)
    return next((it[1] for it in faults if it is not None), None)


def tell_checks(core: Core) -> None:
    """Tell a node of each check that is due. Where no node is ready for the variant, one is wished to be."""
    due = core.store.read(DueChecks())
    if not due:
        return
    rows, nodes = core.store.read(ReadinessRows()), core.store.read(Nodes())
    now = core.clock.now()
    ready = {(row.node, row.key) for row in rows if row.readiness.state is ReadinessState.READY}
    needed = {need.key for need in core.store.read(Needs())}
    for order in due:
        key = order.variant.content_key
        able = [node for node in nodes if (node.id, key) in ready and node.online(now)]
        if able:
            _tell(core, order, able)
        elif key not in needed and (wishes := proof_wishes(core, (order.variant,))):
            core.store.apply(*wishes)


def _tell(core: Core, order: CheckOrder, able: Sequence[Node]) -> None:
    """The same node each time, which joins what is under way; another one where the last could not."""
    failed, _ = core.check_faults.get((order.release, order.variant.content_key), (None, None))
    node = min(able, key=lambda it: (it.id == failed, it.name, it.id))
    with suppress(RefusedError):  # it is away: the next pass looks again
        core.link.reach(node.id).check(order)


def settle_check(core: Core, node: NodeId, outcome: CheckOutcome) -> bool:
    """Write the report and what it means, together. False when nobody waits for it any more."""
    order, report = outcome.order, outcome.report
    name = (order.release, ContentKey(order.variant.content_key))
    if report is None:
        if outcome.fault is not None:
            core.check_faults[name] = (node, outcome.fault)
            core.changed.set()
        return True
    for _ in range(_TRIES):
        found = core.store.read(CatalogOf(releases=frozenset({order.release}))).owner_of(order.release)
        if found is None:
            return False
        entry, held = found[0], found[0].releases[found[1]]
        checked = Checked(order.number, core.clock.now(), report)
        add = AddReport(order.release, name[1], node, checked)
        verdict = reported(held.status, held.contract, report)
        held = replace(held, checked={**held.checked, name[1]: checked})
        wrong = {tool: violation.value for tool, violation in report.violations.items()}
        facts = {"check": order.number, "node": node, "kept": report.kept, "violations": wrong}
        told = audit.done(core, SYSTEM, "release.checked", order.release, facts)
        try:
            core.store.apply(add, *moved(core, (entry, held), verdict), told)
        except Conflict as conflict:
            if conflict.change == add:
                return False
            continue
        core.check_faults.pop(name, None)
        core.changed.set()
        return True
    return False
