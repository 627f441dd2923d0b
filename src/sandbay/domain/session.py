"""A Session: one sandbox and its workspace, from admission to its end.

    create ─placed▶ starting ─booted▶ running ─delete▶ ending ─gone▶ ended
    create ─nothing ready or free, caller waits▶ waiting ─placed▶ starting
    waiting ─time up▶ failed      starting, running ─fault▶ failed
    waiting, starting ─delete▶ ending ─gone▶ ended
    running ─suspend▶ suspending ─kept▶ suspended ─resume▶ resuming ─booted▶ running
    suspending ─cannot be kept▶ running     suspending ─gone▶ failed     resuming ─fault▶ suspended
    suspending, resuming ─delete▶ ending    suspended ─delete, kept long enough▶ ending ─▶ ended

A resume that fails has lost nothing: what was kept is kept on, and the Session is suspended with the fault told.

Deciding the node and reserving it is one transaction, so there is no state between "no node yet" and
`starting`. Who moves a Session on from each state, within which time, and what else becomes of it: `flow.outlive`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sandbay.domain.declaration import Network
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.ids import FrozenId, ProjectId, SessionId
from sandbay.domain.life import EndCause, Foretold, Life
from sandbay.domain.release import Fault
from sandbay.domain.template import TemplateMark


class SessionState(StrEnum):
    """ENDED and FAILED are final."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    RESUMING = "resuming"
    ENDING = "ending"
    ENDED = "ended"
    FAILED = "failed"


SESSION_MOVES: Mapping[SessionState, frozenset[SessionState]] = {
    SessionState.WAITING: frozenset({SessionState.STARTING, SessionState.ENDING, SessionState.FAILED}),
    SessionState.STARTING: frozenset({SessionState.RUNNING, SessionState.ENDING, SessionState.FAILED}),
    SessionState.RUNNING: frozenset({SessionState.SUSPENDING, SessionState.ENDING, SessionState.FAILED}),
    SessionState.SUSPENDING: frozenset(
        {SessionState.SUSPENDED, SessionState.RUNNING, SessionState.ENDING, SessionState.FAILED}
    ),
    SessionState.SUSPENDED: frozenset({SessionState.RESUMING, SessionState.ENDING}),
    SessionState.RESUMING: frozenset({SessionState.RUNNING, SessionState.SUSPENDED, SessionState.ENDING}),
    SessionState.ENDING: frozenset({SessionState.ENDED}),
    SessionState.ENDED: frozenset(),
    SessionState.FAILED: frozenset(),
}

FINAL = frozenset({SessionState.ENDED, SessionState.FAILED})


class WaitingFor(StrEnum):
    """Why a Session has no node yet."""

    IMAGE = "image"
    CAPACITY = "capacity"


@dataclass(frozen=True)
class Session:
    """The frozen release's id and digest never change; the rest moves by `SESSION_MOVES`.

    `template_digest` names the frozen Template that it is prepared with, None when there is nothing to prepare;
    `template` says which Template that was made from, `setup_network` what it reaches while it is prepared.
    `scope` and `agent` are where it was admitted; the trail has the whole path, whatever becomes of the scope.
    `secret_env`: variable → the name of a secret of the project; the values are nowhere but in the vault.
    `moved_at` is when it came to its state (None: at its admission), `used_at` when somebody last used it, roughly;
    `foretold` says that it is going to end, `ended_because` why it is ending or has ended when it did not fail.
    """

    id: SessionId
    project: ProjectId
    frozen: FrozenId
    frozen_digest: str
    state: SessionState
    created_at: datetime
    principal: str
    network: Network = Network.DISABLED
    resources: SandboxSize = field(default_factory=SandboxSize)
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    waiting_for: WaitingFor | None = None
    wait_until: datetime | None = None
    fault: Fault | None = None
    ended_at: datetime | None = None
    revision: int = 1
    template: TemplateMark | None = None
    template_digest: str | None = None
    setup_network: Network | None = None
    scope: str | None = None
    agent: str | None = None
    life: Life = field(default_factory=Life)
    moved_at: datetime | None = None
    used_at: datetime | None = None
    foretold: Foretold | None = None
    ended_because: EndCause | None = None

    @property
    def since(self) -> datetime:
        """When it came to its state."""
        return self.moved_at or self.created_at
