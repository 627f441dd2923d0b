"""Step 0. Where a Session stands: from what it names and what its key is held to, to the one path it has.

What a key is held to is always part of the path: it cannot be left out to shed a ceiling, and nobody borrows a grant by
naming a stranger's scope. What another project owns is answered exactly as what does not exist.
"""

from dataclasses import dataclass

from sandbay.domain.errors import Refusal
from sandbay.domain.path import Path
from sandbay.domain.project import Project
from sandbay.domain.reasons import Reason
from sandbay.domain.scope import UNCONFINED, Confinement, Lineage


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What a Session says of where it acts: its narrowest scope and its agent. None says nothing."""

    scope: str | None = None
    agent: str | None = None

    def within(self, key: Confinement) -> str | None:
        """The scope whose lineage has to be loaded: the one that is named, else the key's own."""
        return key.scope if self.scope is None else self.scope


ANYWHERE = Whereabouts()
"""Nothing said."""


def locate(project: Project, asked: Whereabouts, lineage: Lineage, key: Confinement = UNCONFINED) -> Path | Refusal:
    """The path, or why there is none. `lineage` is that of `asked.within(key)`, empty when no such scope is known."""
    agent = _agent(asked.agent, key)
    if isinstance(agent, Refusal):
        return agent
    fault = _scope_fault(project, asked, lineage, key)
    if fault is not None:
        return fault
    return Path(project.id, project.name, tuple(scope.name for scope in reversed(lineage)), agent)


def _agent(named: str | None, key: Confinement) -> str | Refusal | None:
    if key.agents is None or named in key.agents:
        return named
    if named is None and len(key.agents) == 1:
        return next(iter(key.agents))
    what = "acts for no agent unless one is named" if named is None else f"does not act for {named}"
    return Refusal(Reason.FORBIDDEN, f"this key {what}", "agent", {"agents": sorted(key.agents)})


def _scope_fault(project: Project, asked: Whereabouts, lineage: Lineage, key: Confinement) -> Refusal | None:
    name = asked.within(key)
    if name is None:
        message = "each Session of this project names its scope, such as team:growth"
        return Refusal(Reason.SCOPE_REQUIRED, message, "scope") if project.scope_required else None
    # The key's own scope may have gone: no field of this request is at fault then, and the key reaches nothing.
    param = None if asked.scope is None else "scope"
    if not lineage or any(it.project not in (None, project.id) for it in lineage):
        return Refusal(Reason.SCOPE_UNKNOWN, f"there is no scope {name}", param, {"scope": name})
    if not key.holds(lineage):
        return Refusal(Reason.FORBIDDEN, f"this key is held to {key.scope}", param, {"scope": key.scope})
    return None
