"""Every Session that lives, however many there are."""

from collections.abc import Iterator

from sandbay.domain.session import FINAL, SessionState
from sandbay.ports.records import Page, SessionRecord
from sandbay.ports.store import Sessions, Store

_LIVE = frozenset(SessionState) - FINAL
_PAGE = 500


def live_sessions(store: Store) -> Iterator[SessionRecord]:
    """Every Session that is not final, newest first."""
    page = Page(limit=_PAGE)
    while records := store.read(Sessions(states=_LIVE, page=page)):
        yield from records
        page = Page(records[-1].session.id, _PAGE)
