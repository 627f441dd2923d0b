"""Every mutation, and every refused attempt, leaves a row: who, what, to what, with which outcome."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sandbay.app.core import Actor, Core
from sandbay.domain.canonical import plain
from sandbay.domain.chain import chained
from sandbay.domain.errors import Facts, Refusal, RefusedError
from sandbay.domain.ids import SessionId
from sandbay.domain.reasons import Reason
from sandbay.ports.changes import AddAudit
from sandbay.ports.records import AuditEntry, Page, SessionRecord
from sandbay.ports.store import Audit, AuditInOrder, SessionOf

_WHOLE = Page(limit=10_000)


def done(core: Core, actor: Actor, action: str, subject: str, details: Facts | None = None) -> AddAudit:
    """The entry to apply in the mutation's own transaction."""
    return _entry(core, actor, action, subject, "done", details)


def held_back(core: Core, actor: Actor, action: str, subject: str, refusal: Refusal) -> AddAudit:
    """The entry for what a mutation would have brought with it and was refused; of the mutation's own transaction."""
    return _entry(core, actor, action, subject, refusal.reason.value, refusal.details)


def refused(core: Core, actor: Actor, action: str, subject: str, error: RefusedError) -> None:
    """Record a refused attempt; nothing else was written, so it has a transaction of its own."""
    refusal = error.refusal
    core.store.apply(_entry(core, actor, action, subject, refusal.reason.value, {"param": refusal.param}))
    error.audited = True


@contextmanager
def attempted(core: Core, actor: Actor, action: str, subject: str) -> Iterator[None]:
    """Within the block a refusal is recorded as a refused attempt, and goes on."""
    try:
        yield
    except RefusedError as error:
        refused(core, actor, action, subject, error)
        raise


def entries(core: Core, subject: str | None, page: Page) -> Sequence[AuditEntry]:
    """Newest first; of one subject, or of all."""
    return core.store.read(Audit(subject, page))


def exported(core: Core) -> Iterator[bytes]:
    """The whole audit as lines that hold on to one another (`domain.chain`)."""
    return chained(plain(entry) for entry in _in_order(core))


def _in_order(core: Core) -> Iterator[AuditEntry]:
    after = 0
    while rows := core.store.read(AuditInOrder(after)):
        yield from (entry for _, entry in rows)
        after = rows[-1][0]


@dataclass(frozen=True)
class Account:
    """A Session, past or present, with every entry that speaks of it, oldest first."""

    record: SessionRecord
    entries: Sequence[AuditEntry]


def account_of(core: Core, session: SessionId) -> Account:
    """Which release a Session ran, who decided, and what was done to it since; or `not_found`."""
    record = core.store.read(SessionOf(session))
    if record is None:
        raise RefusedError(Reason.NOT_FOUND, f"there is no Session {session}")
    return Account(record, tuple(reversed(core.store.read(Audit(session, _WHOLE)))))


def _entry(core: Core, actor: Actor, action: str, subject: str, outcome: str, details: Facts | None) -> AddAudit:
    return AddAudit(
        AuditEntry(
            id=core.ids.new("audit"),
            at=core.clock.now(),
            principal=actor.principal,
            action=action,
            subject=subject,
            outcome=outcome,
            details=details,
            request_id=actor.request_id,
        )
    )
