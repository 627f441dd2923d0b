"""Sessions."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from sandbay.api.wire.base import (
    IDLE_TOLD,
    LIFE_TOLD,
    NO_NUL,
    Failure,
    In,
    Labels,
    Listing,
    Out,
    Reference,
    Requires,
    Seconds,
    failure_of,
    requirements_of,
)
from sandbay.api.wire.deployment import CPUS, MEMORY, PIDS, SizeOut, size_out
from sandbay.api.wire.inline import FILES_TOLD, InlineFiles, files_of
from sandbay.api.wire.scopes import AgentText, ScopeText
from sandbay.api.wire.secrets import Variables, plain_of, secrets_of
from sandbay.app.admit_session import MAX_WAIT, Asked
from sandbay.domain.allocation import Booted
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import NOTHING_ASKED, SandboxSize
from sandbay.domain.events import SessionEvent
from sandbay.domain.frozen import FrozenRelease
from sandbay.domain.life import EndCause, Foretold, Life
from sandbay.domain.readiness import Readiness
from sandbay.domain.session import SessionState, WaitingFor
from sandbay.domain.setup import SetupProgress
from sandbay.domain.template import TemplateMark
from sandbay.domain.trail import DecidedBy, Level, Outcome, Trail
from sandbay.flow.locate import Whereabouts
from sandbay.ports.records import SessionRecord


class ResourcesIn(In):
    """The least that the sandbox must have; an omitted member asks for nothing."""

    cpus: Annotated[float, Field(gt=0, le=CPUS)] | None = Field(default=None, description="Processors.")
    memory: Annotated[int, Field(ge=1, le=MEMORY)] | None = Field(default=None, description="Bytes.")
    pids: Annotated[int, Field(ge=1, le=PIDS)] | None = Field(default=None, description="Processes and threads.")

    def size(self) -> SandboxSize:
        """As the domain has it."""
        return SandboxSize(
            self.cpus or NOTHING_ASKED.cpus, self.memory or NOTHING_ASKED.memory, self.pids or NOTHING_ASKED.pids
        )


TemplateName = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_NUL)]


class SessionIn(In):
    """A Session to be made."""

    template: TemplateName | None = Field(default=None, description="A Template of the project, by name or id.")
    runtime_image_id: Reference | None = Field(
        default=None,
        description="An image reference; null or omitted leaves the choice to Template, project and deployment.",
    )
    platform: Annotated[str, Field(max_length=128, pattern=NO_NUL)] | None = Field(
        default=None, description="os/architecture[/variant]; the Template's or the deployment's when omitted."
    )
    env: Variables = Field(default={}, description="Variables of every command, over those of image and Template.")
    files: InlineFiles = Field(
        default=[], description=f"Files of the workspace, over those of the Template. {FILES_TOLD}"
    )
    requires: Requires = Field(
        default=[], description="Tools that the image must have, verified, such as `node>=20` or `git`."
    )
    resources: ResourcesIn = Field(default=ResourcesIn(), description="The least that the sandbox must have.")
    network: Annotated[Network, Field(strict=False)] | None = Field(
        default=None, description="What the sandbox reaches; the Template's when omitted, and else disabled."
    )
    wait_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT)] = Field(
        default=0, description="How long to wait for the image and a free place; 0 fails at once."
    )
    metadata: Labels = Field(default={}, description="Kept with the Session, never looked at.")
    idle_timeout: Seconds | None = Field(
        default=None, description=f"{IDLE_TOLD} The Template's when omitted; never more than the installation allows."
    )
    max_life: Seconds | None = Field(
        default=None, description=f"{LIFE_TOLD} The Template's when omitted; never more than the installation allows."
    )
    scope: ScopeText | None = Field(default=None, description="The narrowest scope that it acts in, as `team:growth`.")
    agent: AgentText | None = Field(default=None, description="The agent that it runs for.")

    def asked(self) -> Asked:
        """As the use case takes it."""
        return Asked(
            runtime_image_id=self.runtime_image_id,
            platform=self.platform,
            requires=requirements_of(self.requires),
            env=plain_of(self.env),
            secret_env=secrets_of(self.env),
            metadata=dict(self.metadata),
            resources=self.resources.size(),
            network=self.network,
            wait_seconds=self.wait_seconds,
            template=self.template,
            files=files_of(self.files),
            whereabouts=Whereabouts(self.scope, self.agent),
            life=Life(self.idle_timeout, self.max_life),
        )


class DecidedByOut(Out):
    """Whose word chose the image."""

    level: Level = Field(description="Where it stands.")
    subject: str | None = Field(description="Whose word it is.")


class FrozenImageOut(Out):
    """The one image that a Session runs, for its whole life."""

    id: str = Field(description="The image's id.")
    name: str = Field(description="The image's name.")
    reference: str = Field(description="What was asked for.")
    release: int = Field(description="The release's number.")
    release_id: str = Field(description="The release's id.")
    digest: str | None = Field(description="The manifest's digest.")
    index_digest: str | None = Field(description="The digest of the index that named it.")
    platform: str = Field(description="os/architecture[/variant].")
    tools: dict[str, str] = Field(description="Its verified tools: name → version; empty when none was verified.")
    decided_by: DecidedByOut = Field(description="Whose word chose it.")


class StepOut(Out):
    """What one level said on the way to the image."""

    level: Level = Field(description="Where it stands.")
    outcome: Outcome = Field(description="What became of it.")
    subject: str | None = Field(description="Whose word it is.")
    said: str | None = Field(description="The word.")
    reason: str | None = Field(description="Why it was refused.")
    enforced: bool = Field(description="Whether the word stands above preferences and wishes.")


class ProgressOut(Out):
    """How far the image is that a waiting Session waits for, or the setup of a starting one."""

    phase: str = Field(description="What the node is doing; `setup` when it prepares the sandbox.")
    bytes_done: int | None = Field(default=None, description="Bytes of the image prepared.")
    bytes_total: int | None = Field(default=None, description="Its bytes in all; null while unknown.")
    step: int | None = Field(default=None, description="The step of the setup, from 1.")
    steps: int | None = Field(default=None, description="How many steps the setup has.")
    doing: str | None = Field(default=None, description="What the step is, for people.")
    output: str | None = Field(default=None, description="The end of what the step has printed.")


class ResourcesOut(Out):
    """The least that was asked for; null where nothing was."""

    cpus: float | None = Field(description="Processors.")
    memory: int | None = Field(description="Bytes.")
    pids: int | None = Field(description="Processes and threads.")


class TemplateMarkOut(Out):
    """Which Template, as it was called and stood at admission."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    revision: int = Field(description="Its revision.")


class ForetoldOut(Out):
    """The end of a Session, said ahead of it."""

    at: datetime = Field(description="When.")
    because: EndCause = Field(description="Why. Using it again takes back what was foretold of an idle one.")


class SessionOut(Out):
    """One sandbox, from admission to its end."""

    id: str = Field(description="Its id.")
    status: SessionState = Field(description="`ended` and `failed` are final.")
    image: FrozenImageOut = Field(description="The image that it was admitted on.")
    trail: list[StepOut] = Field(description="How that image was chosen.")
    template: TemplateMarkOut | None = Field(description="The Template that it was admitted with.")
    scope: str | None = Field(description="The scope that it was admitted in.")
    agent: str | None = Field(description="The agent that it runs for.")
    created_at: datetime = Field(description="When it was admitted.")
    ended_at: datetime | None = Field(description="When it ended or failed.")
    ended_because: EndCause | None = Field(description="Why it is ending or has ended; null when it failed.")
    idle_timeout: int | None = Field(description=f"{IDLE_TOLD} Null: never for that.")
    max_life: int | None = Field(description=f"{LIFE_TOLD} Null: never for that.")
    foretold: ForetoldOut | None = Field(description="That it is going to end without anybody's asking.")
    waiting_for: WaitingFor | None = Field(description="Why it has no node yet.")
    wait_until: datetime | None = Field(description="When waiting ends with `wait_expired`.")
    progress: ProgressOut | None = Field(description="How far it is on its way to run.")
    network: Network = Field(description="What the sandbox reaches.")
    resources: ResourcesOut = Field(description="The least that was asked for.")
    size: SizeOut | None = Field(description="What the sandbox may use; null before it has a place.")
    metadata: dict[str, str] = Field(description="As given.")
    reason: Failure | None = Field(description="Why it failed.")


class SessionStateOut(Out):
    """A state that a Session came to."""

    number: int = Field(description="Rises with each; the event's id.")
    status: SessionState = Field(description="`ended` and `failed` are final.")
    at: datetime = Field(description="When.")
    waiting_for: WaitingFor | None = Field(description="Why it has no node yet.")
    reason: Failure | None = Field(description="What went wrong.")
    foretold: ForetoldOut | None = Field(description="That it is going to end without anybody's asking.")
    ended_because: EndCause | None = Field(description="Why it is ending or has ended; null when it failed.")


class SessionList(Listing[SessionOut]):
    """Newest first."""


class AdminSessionOut(SessionOut):
    """A Session as the administrator sees it."""

    project: str = Field(description="The project's id.")
    principal: str = Field(description="Who made it.")
    node: str | None = Field(description="The id of the node that has, or last had, it.")
    runtime: str | None = Field(description="What runs it; null when nothing does or its node is away.")
    host_pid: int | None = Field(description="Its first process as the host sees it.")


class AdminSessionList(Listing[AdminSessionOut]):
    """Newest first."""


def decided_by_out(decided_by: DecidedBy) -> DecidedByOut:
    """From the domain."""
    return DecidedByOut(level=decided_by.level, subject=decided_by.subject)


def trail_out(trail: Trail) -> list[StepOut]:
    """From the domain."""
    return [
        StepOut(
            level=step.level,
            outcome=step.outcome,
            subject=step.subject,
            said=step.said,
            reason=step.reason,
            enforced=step.enforced,
        )
        for step in trail
    ]


def frozen_image_out(frozen: FrozenRelease) -> FrozenImageOut:
    """From the domain."""
    return FrozenImageOut(
        id=frozen.image,
        name=frozen.image_name,
        reference=frozen.reference,
        release=frozen.number,
        release_id=frozen.release,
        digest=frozen.digest,
        index_digest=frozen.index_digest,
        platform=str(frozen.platform),
        tools=dict(frozen.tools),
        decided_by=decided_by_out(frozen.decided_by),
    )


def _foretold(end: Foretold | None) -> ForetoldOut | None:
    return ForetoldOut(at=end.at, because=end.because) if end else None


def _mark(template: TemplateMark) -> TemplateMarkOut:
    return TemplateMarkOut(id=template.id, name=template.name, revision=template.revision)


SETUP = "setup"
Progress = Readiness | SetupProgress | None


def progress_out(progress: Progress) -> ProgressOut | None:
    """From the prepare or the setup that a Session waits for."""
    match progress:
        case None:
            return None
        case SetupProgress(step, steps, doing, output):
            return ProgressOut(phase=SETUP, step=step, steps=steps, doing=doing, output=output)
        case _:
            done, total = progress.bytes_done, progress.bytes_total or None
            return ProgressOut(phase=progress.state.value, bytes_done=done, bytes_total=total)


def session_out(record: SessionRecord, progress: Progress) -> SessionOut:
    """From the record and the prepare that it waits for."""
    session, allocation = record.session, record.allocation
    asked = session.resources
    return SessionOut(
        id=session.id,
        status=session.state,
        image=frozen_image_out(record.frozen),
        trail=trail_out(record.frozen.trail),
        template=_mark(session.template) if session.template else None,
        scope=session.scope,
        agent=session.agent,
        created_at=session.created_at,
        ended_at=session.ended_at,
        ended_because=session.ended_because,
        idle_timeout=session.life.idle,
        max_life=session.life.longest,
        foretold=_foretold(session.foretold),
        waiting_for=session.waiting_for,
        wait_until=session.wait_until,
        progress=progress_out(progress),
        network=session.network,
        resources=ResourcesOut(cpus=asked.cpus or None, memory=asked.memory or None, pids=asked.pids or None),
        size=None if allocation is None else size_out(allocation.size),
        metadata=dict(session.metadata),
        reason=failure_of(session.fault),
    )


def session_state_out(event: SessionEvent) -> SessionStateOut:
    """From the domain."""
    return SessionStateOut(
        number=event.number,
        status=event.state,
        at=event.at,
        waiting_for=event.waiting_for,
        reason=failure_of(event.fault),
        foretold=_foretold(event.foretold),
        ended_because=event.ended_because,
    )


def admin_session_out(record: SessionRecord, progress: Progress, booted: Booted | None) -> AdminSessionOut:
    """The same, with where it runs."""
    return AdminSessionOut(
        **dict(session_out(record, progress)),
        project=record.session.project,
        principal=record.session.principal,
        node=record.allocation.node if record.allocation else None,
        runtime=booted.runtime if booted else None,
        host_pid=booted.host_pid if booted else None,
    )
