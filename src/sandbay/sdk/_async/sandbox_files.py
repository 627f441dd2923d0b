"""What copying needs of a sandbox's files."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from sandbay.sdk._async.transport import AsyncBody
from sandbay.sdk.resources import FileEntry


class AsyncSandboxFiles(Protocol):
    """What copying needs of a sandbox's files."""

    async def stat(self, path: str) -> FileEntry:
        """What is at a path."""

    async def list(self, path: str) -> Sequence[FileEntry]:
        """What is in a folder."""

    def chunks(self, path: str) -> AsyncIterator[bytes]:
        """A file's bytes."""

    async def send(self, path: str, body: AsyncBody, *, mode: int | None = None) -> None:
        """Replace a file."""

    async def make_folder(self, path: str) -> None:
        """Make a folder."""
