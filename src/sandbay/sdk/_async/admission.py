"""Asking for a Session so that it is never made twice and never left behind.

The key is made before anything is sent, so a lost answer is asked for again, and an interruption at any
moment can find out whether there is a Session and end it.
"""

import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

from sandbay.sdk._async.transport import AsyncCall, AsyncTransport
from sandbay.sdk.admission import FINAL, not_failed, progress_of
from sandbay.sdk.client import said
from sandbay.sdk.errors import LocalError, SandbayError, ServerError, UnreachableError
from sandbay.sdk.resources import ProgressCallback, Session
from sandbay.sdk.transport import segment
from sandbay.sdk.twins import async_shielded

_SESSIONS = "/v1/sessions"
_POLL, _POLL_WITH_PROGRESS = 30, 1
_ANSWER_WITHIN = 90.0  # longer than the server waits inside a create before it answers
_PATIENCE = 60.0  # a server that starts again while we wait


class AsyncAdmission:
    """One Session, from the wish to `running`. `session` is the last that is known of it."""

    def __init__(self, transport: AsyncTransport, wish: Mapping[str, Any], *, key: str | None = None) -> None:
        """`wish` is the body of the create; members that are None are left out."""
        self._transport = transport
        self._body = said(wish)
        self._key = key or uuid.uuid4().hex
        self._asked = False
        self.session: Session | None = None

    async def admit(self) -> Session:
        """Create the Session: running, starting or waiting. Raises the refusal.

        When it was made and failed at once, the error has its `session_id`.
        """
        self._asked = True
        try:
            self.session = await self._create(self._transport)
        except SandbayError as error:
            # A refusal means that nothing was made; without a clear answer nobody knows.
            self._asked = isinstance(error, LocalError | ServerError) and not isinstance(error, UnreachableError)
            raise
        return not_failed(self.session)

    async def wait(self, progress: ProgressCallback | None = None) -> Session:
        """Wait until it runs. Raises why it does not: `wait_expired`, `start_failed` and others."""
        session = self.session or await self.admit()
        while session.status in {"waiting", "starting"}:
            if progress is not None:
                progress(progress_of(session))
            session = self.session = await self._look(session, _POLL if progress is None else _POLL_WITH_PROGRESS)
        return not_failed(session)

    async def discard(self) -> None:
        """End what was made, if anything was. Works on new connections, after an interruption, too."""
        async with contextlib.aclosing(self._transport.fresh()) as transport:
            if self.session is None and self._asked:
                self.session = await self._create(transport)
            if self.session is not None and self.session.status not in FINAL:
                await transport.send(AsyncCall("DELETE", f"{_SESSIONS}/{segment(self.session.id)}"))
        self._asked, self.session = False, None

    @contextlib.asynccontextmanager
    async def kept_if_whole(self) -> AsyncIterator[None]:
        """End the Session again when the block does not come to its end, interruptions included."""
        try:
            yield
        except BaseException:
            with async_shielded(), contextlib.suppress(SandbayError):  # what happened first is what matters
                await self.discard()
            raise

    async def _create(self, transport: AsyncTransport) -> Session:
        headers = {"Idempotency-Key": self._key}
        call = AsyncCall(
            "POST", _SESSIONS, json=self._body, headers=headers, repeatable=True, read_timeout=_ANSWER_WITHIN
        )
        return Session.of(await transport.send(call))

    async def _look(self, session: Session, seconds: int) -> Session:
        call = AsyncCall(
            "GET",
            f"{_SESSIONS}/{segment(session.id)}",
            params={"wait": seconds, "status": session.status},
            read_timeout=seconds + 30.0,
            patience=_PATIENCE,
        )
        return Session.of(await self._transport.send(call))
