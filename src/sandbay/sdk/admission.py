"""What a Session that is waited for has come to."""

from sandbay.sdk.errors import of_reason
from sandbay.sdk.resources import Progress, Session

FINAL = frozenset({"ended", "failed"})


def not_failed(session: Session) -> Session:
    """The Session again. Raises its reason when it has failed or ended, with its `session_id`."""
    if session.status not in FINAL:
        return session
    if session.reason is None:
        error = of_reason({"code": "already_ended", "message": "the Session was ended while it was waited for"})
    else:
        error = of_reason(dict(session.raw["reason"]))
    error.session_id = session.id
    raise error


def progress_of(session: Session) -> Progress:
    """How far it is, for a bar."""
    if session.progress is not None:
        return session.progress
    return Progress(f"waiting for {session.waiting_for}" if session.waiting_for else session.status)
