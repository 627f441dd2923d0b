"""Admit a Session: load → resolve → freeze → place → one transaction. Or one named refusal and nothing left.

The frozen release, the Session, its reservation, the idempotency key and the audit row are written together.
A lost race (slot, generation, idempotency key) is decided again on a fresh view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.app.place_session import enforcing, reserved, send_start, unplaced, waiting_for, wish_for
from sandbay.app.secrets import refuse_unknown
from sandbay.app.select import Wish, select
from sandbay.app.templates import find_template, overtaxed
from sandbay.domain.canonical import canonical, plain, sha256
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import NOTHING_ASKED, Deployment, SandboxSize
from sandbay.domain.errors import RefusedError
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.ids import FrozenId, ProjectId, SessionId
from sandbay.domain.inline import InlineFile, clash
from sandbay.domain.life import NO_LIMIT, Life
from sandbay.domain.path import Path
from sandbay.domain.placement import Placed, Unplaced
from sandbay.domain.reasons import Reason
from sandbay.domain.requirement import Requirement
from sandbay.domain.session import Session, SessionState
from sandbay.domain.template import FrozenTemplate, Preparation, Template
from sandbay.flow.enforce import Enforcing
from sandbay.flow.freeze import freeze_template
from sandbay.flow.locate import ANYWHERE, Whereabouts
from sandbay.flow.place import place
from sandbay.ports.changes import AdmitSession, Change, Conflict, ConflictKind, Reserve
from sandbay.ports.records import SessionRecord
from sandbay.ports.store import CreatedWith, SessionOf

_TRIES = 5
MAX_WAIT = 1_800
_CAN_WAIT = frozenset({Reason.IMAGE_NOT_READY, Reason.NO_CAPACITY, Reason.NO_NODE_ONLINE, Reason.POOL_PAUSED})


@dataclass(frozen=True)
class Asked:
    """A create request. `resources` is a minimum; `wait_seconds` 0 fails at once when nothing is ready."""

    runtime_image_id: str | None = None
    platform: str | None = None
    requires: Sequence[Requirement] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    resources: SandboxSize = NOTHING_ASKED
    network: Network | None = None
    wait_seconds: int = 0
    template: str | None = None
    files: tuple[InlineFile, ...] = ()
    whereabouts: Whereabouts = ANYWHERE
    life: Life = NO_LIMIT


@dataclass(frozen=True)
class Admitted:
    """`created` is False when an idempotency key had already made it."""

    record: SessionRecord
    created: bool


def admit_session(core: Core, actor: Actor, asked: Asked, idempotency_key: str | None = None) -> Admitted:
    """Admit, or raise the refusal. A retry with the same key looks at nothing again."""
    project = _project(actor)
    body_hash = sha256(canonical(asked))
    try:
        for _ in range(_TRIES):
            replayed = _replay(core, project, idempotency_key, body_hash)
            if replayed is not None:
                core.metrics.admitted("replayed")
                return Admitted(replayed, created=False)
            try:
                record = _admit(core, actor, asked, idempotency_key, body_hash)
            except Conflict as conflict:
                if conflict.kind not in (ConflictKind.FULL, ConflictKind.STALE, ConflictKind.TAKEN):
                    raise
            else:
                core.metrics.admitted("waiting" if record.session.state is SessionState.WAITING else "placed")
                core.changed.set()
                return Admitted(record, created=True)
    except RefusedError as error:
        audit.refused(core, actor, "session.create", asked.runtime_image_id or project, error)
        core.metrics.admitted("refused", error.refusal.reason.value)
        raise
    core.metrics.admitted("refused", Reason.NO_CAPACITY.value)
    raise RefusedError(Reason.NO_CAPACITY, "others took every free slot first; try again", details={"tries": _TRIES})


def _project(actor: Actor) -> ProjectId:
    if actor.project is None:
        raise RefusedError(Reason.FORBIDDEN, "a Session belongs to a project; use a project key")
    return actor.project


def _replay(core: Core, project: ProjectId, key: str | None, body_hash: str) -> SessionRecord | None:
    created = core.store.read(CreatedWith(project, key)) if key is not None else None
    if created is None:
        return None
    if created.body_hash != body_hash:
        raise RefusedError(
            Reason.IDEMPOTENCY_CONFLICT,
            "this Idempotency-Key was used with another body",
            param="Idempotency-Key",
            details={"session": created.session},
        )
    return core.store.read(SessionOf(created.session, project))


@dataclass(frozen=True)
class _Wanted:
    """What the Session will keep, and the deployment that this was decided under."""

    frozen: FrozenRelease
    kept: FrozenTemplate
    life: Life
    deployment: Deployment
    path: Path


def _wanted(core: Core, actor: Actor, project: ProjectId, asked: Asked) -> _Wanted:
    template = find_template(core, project, asked.template, "template") if asked.template is not None else None
    wish = Wish(
        *(asked.runtime_image_id, asked.platform, template),
        requires=asked.requires,
        whereabouts=asked.whereabouts,
        key=actor.confinement,
    )
    selection = select(core, project, wish)
    said = template.content.life if template else NO_LIMIT
    life = asked.life.over(said).within(core.settings.life)
    kept = _kept(template, asked)
    refuse_unknown(core, project, kept.secret_env)
    return _Wanted(selection.frozen(), kept, life, selection.deployment, selection.path)


def _admit(core: Core, actor: Actor, asked: Asked, key: str | None, body_hash: str) -> SessionRecord:
    project = _project(actor)
    wanted = _wanted(core, actor, project, asked)
    now = core.clock.now()
    session_id = SessionId(core.ids.new("session"))
    able = _able(core, wanted, asked)
    outcome = place(wanted.frozen, asked.resources, able.pools, able.fleet, session_id)
    if isinstance(outcome, Unplaced) and not (asked.wait_seconds and outcome.reason in _CAN_WAIT):
        core.store.apply(*wish_for(core, wanted.frozen, outcome))
        core.changed.set()
        _count(core, outcome)
        raise unplaced(outcome)
    kept = wanted.kept if wanted.kept.prepares else None
    session = Session(
        id=session_id,
        project=project,
        frozen=FrozenId(core.ids.new("frozen")),
        frozen_digest=wanted.frozen.document_digest,
        state=SessionState.STARTING if isinstance(outcome, Placed) else SessionState.WAITING,
        created_at=now,
        principal=actor.principal,
        network=wanted.kept.network,
        resources=asked.resources,
        env=dict(wanted.kept.env),
        secret_env=dict(wanted.kept.secret_env),
        metadata=dict(asked.metadata),
        waiting_for=None if isinstance(outcome, Placed) else waiting_for(outcome),
        wait_until=None if isinstance(outcome, Placed) else now + timedelta(seconds=asked.wait_seconds),
        template=kept.template if kept else None,
        template_digest=kept.document_digest if kept else None,
        setup_network=kept.setup_network if kept else None,
        scope=wanted.path.scopes[-1] if wanted.path.scopes else None,
        agent=wanted.path.agent,
        life=wanted.life,
    )
    record = _apply(core, actor, AdmitSession(session, wanted.frozen, key, body_hash, kept), outcome, wanted.deployment)
    _count(core, outcome)
    return record


def _count(core: Core, outcome: Placed | Unplaced) -> None:
    """Whether the image was where it was needed. Full, paused or absent nodes say nothing about that."""
    if isinstance(outcome, Placed) or outcome.reason is Reason.IMAGE_NOT_READY:
        core.metrics.looked_for_image(ready=isinstance(outcome, Placed))


def _kept(template: Template | None, asked: Asked) -> FrozenTemplate:
    """What the Session is prepared with. What the request adds may be in the way of what the Template has."""
    kept = freeze_template(template, _said(asked))
    fault = clash(kept.files)
    if fault is not None:
        raise RefusedError(Reason.INVALID_BODY, f"with the files of the Template: {fault.why}", param="files")
    return kept


def _said(asked: Asked) -> Preparation:
    return Preparation(env=asked.env, secret_env=asked.secret_env, files=asked.files, network=asked.network)


def _able(core: Core, wanted: _Wanted, asked: Asked) -> Enforcing:
    """The pools and nodes that enforce both networks."""
    kept = wanted.kept
    try:
        return enforcing(core, wanted.deployment, wanted.frozen, kept.network, kept.setup_network)
    except RefusedError as error:
        raise RefusedError.of(overtaxed(error.refusal, kept, own_network=asked.network is not None)) from error


def _apply(
    core: Core, actor: Actor, admission: AdmitSession, outcome: Placed | Unplaced, deployment: Deployment
) -> SessionRecord:
    session, frozen = admission.session, admission.frozen
    facts = {
        "release": f"{frozen.image_name}:{frozen.number}",
        "digest": frozen.digest,
        "by": frozen.decided_by.level,
        "template": session.template and plain(session.template),
    }
    changes: list[Change] = [admission]
    allocation = None
    if isinstance(outcome, Placed):
        allocation = reserved(core, session, outcome, deployment)
        changes.append(Reserve(allocation, frozen.content_key, outcome.slots, session.created_at))
    else:
        changes += wish_for(core, frozen, outcome)
    core.store.apply(*changes, audit.done(core, actor, "session.create", session.id, facts))
    record = SessionRecord(session, frozen, allocation)
    if allocation is not None:
        send_start(core, record)
    return record
