"""Every mutation, and every refused attempt, leaves a row: who, what, to what, with which outcome."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sandbay.app.core import Actor, Core
from sandbay.domain.errors import Facts, RefusedError
from sandbay.ports.changes import AddAudit
from sandbay.ports.records import AuditEntry, Page
from sandbay.ports.store import Audit


def done(core: Core, actor: Actor, action: str, subject: str, details: Facts | None = None) -> AddAudit:
    """The entry to apply in the mutation's own transaction."""
    return _entry(core, actor, action, subject, "done", details)


def refused(core: Core, actor: Actor, action: str, subject: str, error: RefusedError) -> None:
    """Record a refused attempt; nothing else was written, so it has a transaction of its own."""
    refusal = error.refusal
    core.store.apply(_entry(core, actor, action, subject, refusal.reason.value, {"param": refusal.param}))


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
