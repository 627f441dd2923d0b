"""Long work as events: how far it is, and at last what came of it, or why nothing did.

It goes on when nobody listens any more: whoever asks for the same again finds what it has come to.
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from starlette.requests import Request

from sandbay.api import attempts, errors
from sandbay.api.live import News, event
from sandbay.api.wire.base import Out
from sandbay.app.core import Core
from sandbay.domain.errors import RefusedError

Told = TypeVar("Told", bound=Out)


class Following(Generic[Told]):
    """The one who asked for the work looks at it; it begins with the first look.

    Events are `progress`, in the end `ended` with what came of it, or `refused` with the envelope that would have been
    the answer. What is refused before any progress is refused as without events.
    """

    def __init__(self, request: Request, core: Core, work: Callable[[Callable[[Told], None]], Out], ended: str) -> None:
        """`work` tells how far it is."""
        self._core, self._work, self._ended = core, work, ended
        self._request_id: str | None = request.state.request_id
        self._record = attempts.recorder(request)
        self._outcome: Future[Out] = Future()
        self._now: Told | None = None
        self._told: Told | None = None
        self._thread: threading.Thread | None = None
        self._to_tell = threading.Event()

    def news(self) -> News:
        """Refuses what is refused before anything was told; raises `RefusedError`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"sandbay-{self._ended}", daemon=True)
            self._thread.start()
            self._to_tell.wait()
        ended = self._outcome.done()
        error = self._outcome.exception() if ended else None
        if error is not None and (self._told is None or not isinstance(error, RefusedError)):
            raise error
        news = self._progress()
        if isinstance(error, RefusedError):
            if self._record is not None:
                self._record(error)
            news.append(event("refused", json.dumps(errors.envelope(error.refusal, self._request_id), default=str)))
        elif ended:
            news.append(event(self._ended, self._outcome.result().model_dump_json()))
        return News(news, final=ended)

    def _progress(self) -> list[bytes]:
        now, told = self._now, self._told
        self._told = now
        return [] if now is None or now == told else [event("progress", now.model_dump_json())]

    def _run(self) -> None:
        try:
            self._outcome.set_result(self._work(self._hear))
        except BaseException as error:  # noqa: BLE001 - raised where it is looked at
            self._outcome.set_exception(error)
        finally:
            self._to_tell.set()
            self._core.changed.set()

    def _hear(self, told: Told) -> None:
        self._now = told
        self._to_tell.set()
