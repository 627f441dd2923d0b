"""A registration as events: how far its copying is, and at last the release, or why there is none.

It goes on when nobody listens any more: whoever asks for the same again finds what it has come to.
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future

from sandbay.api import errors
from sandbay.api.live import News, event
from sandbay.api.wire.releases import ReleaseOut, copied_out
from sandbay.app.core import Core
from sandbay.domain.errors import RefusedError
from sandbay.ports.image_source import Copied, Progress

EVENTS = (
    "Event `progress`: `{bytes_done, bytes_total, layers}`, what is copied into the installation's store. The last"
    " event is `release`, the release's resource, or `refused`, the envelope that would have been the answer. What is"
    " refused before anything is copied is refused as without events."
)


class Registering:
    """The one who asked for a registration looks at it; the work begins with the first look."""

    def __init__(self, core: Core, register: Callable[[Progress], ReleaseOut], request_id: str | None) -> None:
        """`register` does the work, and tells how far it is."""
        self._core, self._register, self._request_id = core, register, request_id
        self._outcome: Future[ReleaseOut] = Future()
        self._copied: Copied | None = None
        self._told: Copied | None = None
        self._work: threading.Thread | None = None
        self._to_tell = threading.Event()

    def news(self) -> News:
        """Refuses what is refused before anything was told; raises `RefusedError`."""
        if self._work is None:
            self._work = threading.Thread(target=self._run, name="sandbay-register", daemon=True)
            self._work.start()
            self._to_tell.wait()
        ended = self._outcome.done()
        error = self._outcome.exception() if ended else None
        if error is not None and (self._told is None or not isinstance(error, RefusedError)):
            raise error
        news = self._progress()
        if isinstance(error, RefusedError):
            news.append(event("refused", json.dumps(errors.envelope(error.refusal, self._request_id), default=str)))
        elif ended:
            news.append(event("release", self._outcome.result().model_dump_json()))
        return News(news, final=ended)

    def _progress(self) -> list[bytes]:
        now, told = self._copied, self._told
        self._told = now
        return [] if now is None or now == told else [event("progress", copied_out(now).model_dump_json())]

    def _run(self) -> None:
        try:
            self._outcome.set_result(self._register(self._hear))
        except BaseException as error:  # noqa: BLE001 - raised where it is looked at
            self._outcome.set_exception(error)
        finally:
            self._to_tell.set()
            self._core.changed.set()

    def _hear(self, copied: Copied) -> None:
        self._copied = copied
        self._to_tell.set()
