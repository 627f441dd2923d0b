"""What stands under a subject: read, written and taken away at the revision that was seen, each with its audit row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sandbay.app import audit
from sandbay.app.core import Actor, Core
from sandbay.domain.binding import Binding, Written
from sandbay.domain.canonical import plain
from sandbay.domain.ceiling import AllowListAt, Grant, OverrideAt
from sandbay.domain.errors import RefusedError
from sandbay.domain.ids import ImageId
from sandbay.domain.path import Subject
from sandbay.domain.reasons import Reason
from sandbay.ports.changes import Change, Conflict, ConflictKind
from sandbay.ports.records import Page
from sandbay.ports.standing import DropStanding, PutStanding, RowsOf, RowT, Standard, subject_text

_TRIES = 5
WORDS: Mapping[type[object], str] = {
    Binding: "binding",
    AllowListAt: "allow_list",
    OverrideAt: "override",
    Grant: "grant",
}
"""What each kind of row is called in the audit."""

Check = Callable[[Any], None]
"""Is handed the row that is there, or None, and raises the refusal."""


def by(core: Core, actor: Actor, reason: str | None) -> Written:
    """Who writes, now. The revision is `put_row`'s to count."""
    return Written(actor.principal, core.clock.now(), reason)


def rows(core: Core, kind: type[RowT], page: Page) -> Sequence[RowT]:
    """All of a kind, in the order of their subjects."""
    return core.store.read(RowsOf(kind, page=page))


def row_of(core: Core, kind: type[RowT], subject: Subject, image: ImageId | None = None) -> RowT | None:
    """The one row of this subject (of a grant: and image)."""
    found = core.store.read(RowsOf(kind, subject, Page(limit=1_000)))
    return next((row for row in found if image is None or getattr(row, "image", None) == image), None)


def put_row(
    core: Core,
    actor: Actor,
    row: RowT,
    expected: int | None,
    check: Check = lambda _there: None,
    beside: Callable[[], Sequence[Change]] = tuple,
) -> RowT:
    """Write it in place of the one that is there. `expected`: 0 for none, None for whatever is there.

    beside: what is written with it, made anew for each try.
    """
    action, subject = f"{WORDS[type(row)]}.put", _told(row)
    with audit.attempted(core, actor, action, subject):
        for _ in range(_TRIES):
            there = row_of(core, type(row), row.subject, getattr(row, "image", None))
            check(there)
            revision = _expected(there, expected)
            following = replace(row, written=replace(row.written, revision=revision + 1))
            done = audit.done(core, actor, action, subject, {"before": _said(there), "after": _said(following)})
            if _apply(core, *beside(), PutStanding(following), done):
                return following
        raise _restless()


def drop_row(
    core: Core,
    actor: Actor,
    kind: type[RowT],
    subject: Subject,
    expected: int | None,
    check: Check = lambda _there: None,
    *,
    image: ImageId | None = None,
    beside: Callable[[], Sequence[Change]] = tuple,
) -> None:
    """Take it away, or `not_found`."""
    word = WORDS[kind]
    at = subject_text(subject)
    with audit.attempted(core, actor, f"{word}.delete", at):
        for _ in range(_TRIES):
            there = row_of(core, kind, subject, image)
            check(there)
            if there is None:
                raise RefusedError(Reason.NOT_FOUND, f"there is no {word.replace('_', '-')} here")
            _expected(there, expected)
            done = audit.done(core, actor, f"{word}.delete", at, {"before": _said(there)})
            if _apply(core, *beside(), DropStanding(there), done):
                return
        raise _restless()


def _expected(there: Standard | None, expected: int | None) -> int:
    """The revision that is there, 0 for none; refuses when another one was expected."""
    revision = 0 if there is None else there.written.revision
    if expected not in (None, revision):
        message = "it has changed since you read it; read it again"
        raise RefusedError(Reason.REVISION_STALE, message, param="expected_revision", details={"current": revision})
    return revision


def _apply(core: Core, *changes: Change) -> bool:
    """Whether it was written; not when somebody else was first."""
    try:
        core.store.apply(*changes)
    except Conflict as conflict:
        if conflict.kind not in (ConflictKind.STALE, ConflictKind.MISSING):
            raise
        return False
    core.changed.set()
    return True


def _restless() -> RefusedError:
    return RefusedError(Reason.REVISION_STALE, "it keeps changing; try again", param="expected_revision")


def _said(row: Standard | None) -> Any:
    """What a row says, for the audit."""
    return None if row is None else {name: value for name, value in plain(row).items() if name != "subject"}


def _told(row: Standard) -> str:
    return subject_text(row.subject)
