"""Who may write what of selection with a project key. Administrators may write everything.

A project key binds what is its project's, as a preference, and registers scopes below its project's own. One that is
held to a part of the project writes only what concerns nothing outside that part. What another project owns is
answered exactly as what does not exist.
"""

from sandbay.domain.binding import Binding, Mode
from sandbay.domain.errors import Refusal
from sandbay.domain.ids import ProjectId
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason
from sandbay.domain.scope import Confinement, Lineage, Scope
from sandbay.domain.trail import Level


def visible(project: ProjectId, key: Confinement, lineage: Lineage) -> bool:
    """Whether this key may know of the scope: it is the project's or everybody's, and where the key is held to."""
    return bool(lineage) and all(it.project in (None, project) for it in lineage) and key.holds(lineage)


def may_bind(
    project: ProjectId, key: Confinement, subject: Subject, lineage: Lineage, there: Binding | None
) -> Refusal | None:
    """Why the preference of this subject is not this key's to write; None when it is.

    lineage: of the scope, when it is one. there: the binding that would be replaced or taken away.
    """
    match subject.level:
        case Level.SCOPE:
            refusal = _scope_is_ours(str(subject.name), project, key, lineage)
            outside = key.agents is not None
        case Level.AGENT:
            refusal = None
            outside = key.scope is not None or (key.agents is not None and subject.name not in key.agents)
        case _:
            refusal = None
            outside = key.scope is not None or key.agents is not None
    if refusal is not None:
        return refusal
    if outside:
        return _forbidden("it would choose for Sessions that this key is not for", key)
    if there is not None and there.mode is Mode.ENFORCE:
        return Refusal(
            Reason.FORBIDDEN, "what is enforced here is the administrator's", None, {"mode": there.mode.value}
        )
    return None


def may_register(
    project: ProjectId, key: Confinement, scope: Scope, there: Scope | None, above: Lineage
) -> Refusal | None:
    """Why this key may not register the scope; None when it may. above: the lineage of its parent.

    Moving is the administrator's: it takes a scope out from below ceilings.
    """
    if scope.parent is None:
        return _forbidden("the administrator registers scopes that have no parent", key, "parent")
    refusal = _scope_is_ours(scope.parent, project, key, above, "parent")
    if refusal is not None:
        return refusal
    if there is not None and there.project != project:
        return Refusal(Reason.NAME_TAKEN, f"the name {scope.name} is used", None)
    if there is not None and there.parent != scope.parent:
        return _forbidden("the administrator moves scopes", key, "parent")
    return None


def may_forget(project: ProjectId, key: Confinement, name: str, lineage: Lineage) -> Refusal | None:
    """Why this key may not forget the scope; None when it may: it stands below one that the project was given."""
    refusal = _scope_is_ours(name, project, key, lineage)
    if refusal is not None:
        return refusal
    given = len(lineage) == 1 or lineage[1].project != project or name == key.scope
    return _forbidden("the administrator gave this scope to the project", key) if given else None


def _scope_is_ours(
    name: str, project: ProjectId, key: Confinement, lineage: Lineage, param: str | None = None
) -> Refusal | None:
    if not visible(project, key, lineage):
        return Refusal(Reason.SCOPE_UNKNOWN, f"there is no scope {name}", param, {"scope": name})
    if lineage[0].project != project:
        return _forbidden(f"{name} is not this project's own", key, param)
    return None


def _forbidden(why: str, key: Confinement, param: str | None = None) -> Refusal:
    held = {"scope": key.scope, "agents": None if key.agents is None else sorted(key.agents)}
    facts = {name: value for name, value in held.items() if value is not None}
    return Refusal(Reason.FORBIDDEN, why, param, facts)
