# Made by `./dev sdk` from _async/sandbox_files.py, which is the one to edit.
"""What copying needs of a sandbox's files."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from sandbay.sdk._sync.transport import Body
from sandbay.sdk.resources import FileEntry


class SandboxFiles(Protocol):
    """What copying needs of a sandbox's files."""

    def stat(self, path: str) -> FileEntry:
        """What is at a path."""

    def list(self, path: str) -> Sequence[FileEntry]:
        """What is in a folder."""

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file's bytes."""

    def send(self, path: str, body: Body, *, mode: int | None = None) -> None:
        """Replace a file."""

    def make_folder(self, path: str) -> None:
        """Make a folder."""
