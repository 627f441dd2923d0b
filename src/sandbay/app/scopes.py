"""Scopes: registered, moved, forgotten."""

from collections.abc import Sequence
from dataclasses import replace

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.ids import ProjectId
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import Malformed
from sandbay.domain.scope import DEEPEST, Lineage, Scope, parent_fault, parse_scope
from sandbay.flow.permit import may_forget, may_register
from sandbay.ports.changes import Change, Conflict, ConflictKind
from sandbay.ports.records import Page
from sandbay.ports.standing import DropScope, LineageOf, PutScope, Scopes

_TRIES = 5


def list_scopes(core: Core, page: Page, project: ProjectId | None = None) -> Sequence[Scope]:
    """By name: all, or those that a project may name."""
    return core.store.read(Scopes(project, page=page))


def list_own_scopes(core: Core, actor: Actor, page: Page) -> Sequence[Scope]:
    """By name: those that this key may name."""
    return core.store.read(Scopes(actor.project, actor.confinement.scope, page))


def put_scope(
    core: Core, actor: Actor, name: str, parent: str | None, project: ProjectId | None, expected: int | None
) -> Scope:
    """Register a scope, or move it below another parent. One that is as asked stays as it is.

    A project key registers below its project's own scopes; whose a scope is never changes.
    """
    with audit.attempted(core, actor, "scope.put", name):
        parsed = parse_scope(name)
        if isinstance(parsed, Malformed):
            raise RefusedError(Reason.INVALID_BODY, parsed.why, param="scope")
        for _ in range(_TRIES):
            there = next(iter(core.store.read(LineageOf(name))), None)
            above: Lineage = () if parent is None else core.store.read(LineageOf(parent))
            scope = (
                Scope(name, core.clock.now(), parent, project, 1) if there is None else replace(there, parent=parent)
            )
            _check(actor, scope, there, above, project)
            revision = 0 if there is None else there.revision
            _check_revision(revision, expected)
            if scope == there:
                return there
            following = replace(scope, revision=revision + 1)
            before = None if there is None else there.parent
            facts = {"parent": parent, "before": before, "project": following.project, "revision": following.revision}
            if _apply(core, PutScope(following), audit.done(core, actor, "scope.put", name, facts)):
                return following
        raise RefusedError(Reason.REVISION_STALE, "it keeps changing; try again", param="expected_revision")


def drop_scope(core: Core, actor: Actor, name: str, expected: int | None) -> None:
    """Forget it. Refused while something stands below or under it, or a key is held to it. Sessions stay."""
    with audit.attempted(core, actor, "scope.delete", name):
        for _ in range(_TRIES):
            lineage = core.store.read(LineageOf(name))
            refusal = None if actor.project is None else may_forget(actor.project, actor.confinement, name, lineage)
            if refusal is not None:
                raise RefusedError.of(refusal)
            if not lineage:
                raise RefusedError(Reason.SCOPE_UNKNOWN, f"there is no scope {name}", details={"scope": name})
            _check_revision(lineage[0].revision, expected)
            done = audit.done(core, actor, "scope.delete", name, {"parent": lineage[0].parent})
            if _apply(core, DropScope(name, lineage[0].revision), done):
                return
        raise RefusedError(Reason.REVISION_STALE, "it keeps changing; try again", param="expected_revision")


def _check(actor: Actor, scope: Scope, there: Scope | None, above: Lineage, project: ProjectId | None) -> None:
    refusal: Refusal | None = None
    if actor.project is not None:
        refusal = may_register(actor.project, actor.confinement, scope, there, above)
    elif scope.project != project:
        refusal = Refusal(Reason.NAME_TAKEN, f"{scope.name} is registered, for another owner", "project")
    elif scope.parent is not None and not above:
        refusal = Refusal(Reason.SCOPE_UNKNOWN, f"there is no scope {scope.parent}", "parent", {"scope": scope.parent})
    if refusal is not None:
        raise RefusedError.of(refusal)
    fault = parent_fault(scope, above)
    if fault is not None:
        raise RefusedError(Reason.INVALID_BODY, fault, param="parent")


def _check_revision(current: int, expected: int | None) -> None:
    if expected not in (None, current):
        message = "it has changed since you read it; read it again"
        raise RefusedError(Reason.REVISION_STALE, message, param="expected_revision", details={"current": current})


def _apply(core: Core, *changes: Change) -> bool:
    """Whether it was written; not when somebody else was first."""
    try:
        core.store.apply(*changes)
    except Conflict as conflict:
        if conflict.kind is ConflictKind.LIMIT:
            message = f"something below it would stand deeper than {DEEPEST} scopes"
            raise RefusedError(
                Reason.LIMIT_REACHED, message, param="parent", details={"limit": "path", "bound": DEEPEST}
            ) from conflict
        if conflict.kind is ConflictKind.IN_USE and isinstance(conflict.change, DropScope):
            raise RefusedError(
                Reason.IN_USE, "something still needs this scope", details={"by": [conflict.current]}
            ) from conflict
        return False
    core.changed.set()
    return True
