"""The agent's eye on room: what may go, by Core's grant alone, and what has to wait until it has gone."""

from collections.abc import Callable, Mapping, Sequence

import structlog

from sandbay.domain.disk import Disk, coming
from sandbay.domain.readiness import Readiness
from sandbay.domain.release import ContentKey
from sandbay.flow.evict import NodeView, Room, make_room
from sandbay.ports.clock import Clock
from sandbay.ports.node_link import Wanted

_ASK_AGAIN = 10.0
"""Seconds until Core is asked once more for what it did not grant."""
_TRY_AGAIN = 60.0
"""Seconds until it is tried once more to remove what would not go."""

Spare = Callable[[Sequence[ContentKey]], frozenset[ContentKey]]
"""Asks Core for grants to drop; tells which it gave."""

log = structlog.get_logger()


class Space:
    """One node's. Not for several threads at once."""

    def __init__(self, disk: Callable[[], Disk | None], spare: Spare, clock: Clock) -> None:
        """`disk` tells what is there now."""
        self._disk, self._spare, self._clock = disk, spare, clock
        self._refused: dict[ContentKey, float] = {}

    def look(self, wanted: Wanted, held: Mapping[ContentKey, Readiness], slots: int) -> Room:
        """What to do about room now. Where nobody can say how much there is, nothing."""
        try:
            disk = self._disk()
        except Exception:
            log.exception("the disk could not be looked at")
            return Room()
        if disk is None:
            return Room()
        now = self._clock.monotonic()
        self._refused = {key: until for key, until in self._refused.items() if until > now}
        whole = {it.key for it in disk.held}
        asked = {key: wanted.variants[key] for key, _ in wanted.items.items if key in wanted.variants}
        view = NodeView(
            disk=disk,
            wanted=wanted.items,
            held=held,
            coming={key: coming(it.layers) for key, it in asked.items() if key not in whole},
            refused=frozenset(self._refused),
            slots=slots,
        )
        return make_room(view, self._clock.now())

    def granted(self, keys: Sequence[ContentKey]) -> Sequence[ContentKey]:
        """Those of them that Core lets go, in the same order; the others are left alone for a while."""
        if not keys:
            return ()
        try:
            given = self._spare(keys)
        except Exception:
            log.exception("Core could not be asked what may go")
            given = frozenset()
        self._leave(set(keys) - given, _ASK_AGAIN)
        return [key for key in keys if key in given]

    def stuck(self, key: ContentKey) -> None:
        """It could not be removed."""
        self._leave({key}, _TRY_AGAIN)

    def _leave(self, keys: set[ContentKey], seconds: float) -> None:
        self._refused |= dict.fromkeys(keys, self._clock.monotonic() + seconds)
