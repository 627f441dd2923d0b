# Made by `./dev sdk` from _async/sandbox.py, which is the one to edit.
"""One sandbox, as a handle: its image, its commands, its files."""

from types import TracebackType
from typing import Self, Unpack

from sandbay.sdk._sync.client import Client
from sandbay.sdk._sync.commands import Commands
from sandbay.sdk._sync.files import Files
from sandbay.sdk.client import SUSPEND_WAIT, WAIT, Wish
from sandbay.sdk.resources import FrozenImage, ProgressCallback, Session
from sandbay.sdk.twins import shielded


class Sandbox:
    """A running Session. `commands` and `files` act in it, `session` is what was last known of it.

    The end of a `with` block ends a Session that was created here, and only lets go of one that was connected.
    """

    def __init__(self, client: Client, session: Session, *, owns_session: bool, owns_client: bool) -> None:
        """Use `create` or `connect`."""
        self.session = session
        self.commands = Commands(client.transport, session.id)
        self.files = Files(client.transport, session.id)
        self._client, self._owns_session, self._owns_client = client, owns_session, owns_client

    @classmethod
    def create(
        cls,
        image: str | None = None,
        *,
        wait: int = WAIT,
        progress: ProgressCallback | None = None,
        client: Client | None = None,
        **wish: Unpack[Wish],
    ) -> Self:
        """Admit a Session and wait until it runs, at most `wait` seconds for an image or a place; 0 fails at once.

        Without `image` the project's or the deployment's choice is taken. Raises why there is none:
        `UnknownReferenceError`, `ChoosingError`, `PlacementError`, `StartError`, `RequestError`. Whatever is
        raised, an interruption included, nothing keeps running.
        """
        ours = client or Client()
        try:
            admission = ours.sessions.request(image, wait=wait, **wish)
            with admission.kept_if_whole():
                return cls(ours, admission.wait(progress), owns_session=True, owns_client=client is None)
        except BaseException:
            if client is None:
                ours.close()
            raise

    @classmethod
    def connect(cls, session: str, *, client: Client | None = None) -> Self:
        """A handle for a Session that exists. Raises `UnknownReferenceError` (not_found)."""
        ours = client or Client()
        try:
            return cls(ours, ours.sessions.get(session), owns_session=False, owns_client=client is None)
        except BaseException:
            if client is None:
                ours.close()
            raise

    @property
    def id(self) -> str:
        """The Session's id."""
        return self.session.id

    @property
    def image(self) -> FrozenImage:
        """What it runs for its whole life: `digest`, `release`, `decided_by` and more."""
        return self.session.image

    def refresh(self) -> Session:
        """Ask again what is known of the Session."""
        self.session = self._client.sessions.get(self.id)
        return self.session

    def suspend(self, *, wait: int = SUSPEND_WAIT) -> Session:
        """Keep its files and end its processes. Waits at most `wait` seconds; suspending it again is fine."""
        self.session = self._client.sessions.suspend(self.id, wait=wait)
        return self.session

    def resume(self, *, wait: int = SUSPEND_WAIT) -> Session:
        """Start it from what was kept, on the same release. Waits at most `wait` seconds; one that runs is fine."""
        self.session = self._client.sessions.resume(self.id, wait=wait)
        return self.session

    def delete(self) -> None:
        """End the Session now; ending it again is fine."""
        self._client.sessions.delete(self.id)

    def close(self) -> None:
        """Close the connections that were made for this handle; the Session lives on."""
        if self._owns_client:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with shielded():
            try:
                if self._owns_session:
                    self.delete()
            finally:
                self.close()
