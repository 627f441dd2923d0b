"""Files that come inside a request: of a Template, a Session, a skill or a plugin. They end up in the workspace.

Paths are relative to the folder that the files belong to and never lead out of it. Whoever wrote them is hostile.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sandbay.domain.command import WORKSPACE

FILES = 50
"""Files of one folder: those of a Template, of a request, of each skill, of each plugin."""

INLINE_BYTES = 10 * 1024 * 1024
"""Bytes of all files of one Template, or of one request, together."""

PATH_BYTES = 1024
_NAME_BYTES = 255


@dataclass(frozen=True, slots=True)
class Unfit:
    """What was given cannot be that; `why` is one plain sentence, `at` the member at fault, outermost first."""

    why: str
    at: tuple[str | int, ...] = ()


class Encoding(StrEnum):
    """How `content` stands for bytes."""

    TEXT = "utf-8"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class InlineFile:
    """`size` in bytes, of what `content` stands for. `content` is None where only an outline was asked for."""

    path: str
    content: str | None
    size: int
    encoding: Encoding = Encoding.TEXT
    executable: bool = False

    @property
    def data(self) -> bytes:
        """The bytes. A LookupError on an outline."""
        if self.content is None:
            raise LookupError(f"{self.path} is here in outline only")
        return self.content.encode() if self.encoding is Encoding.TEXT else base64.b64decode(self.content)

    @property
    def outline(self) -> "InlineFile":
        """The same without its bytes."""
        return replace(self, content=None)


def inline_file(path: str, content: str, encoding: Encoding, *, executable: bool) -> InlineFile | Unfit:
    """A file from what was written, with its path in the one form that it is kept in."""
    where = inner_path(path)
    if isinstance(where, Unfit):
        return Unfit(where.why, ("path",))
    if encoding is Encoding.TEXT:
        return InlineFile(where, content, len(content.encode()), encoding, executable)
    try:
        size = len(base64.b64decode(content, validate=True))
    except (binascii.Error, ValueError):
        return Unfit("the content is no base64", ("content",))
    return InlineFile(where, content, size, encoding, executable)


def inner_path(text: str) -> str | Unfit:
    """`a/b` from `a/b`, `./a/b` or `/workspace/a/b`; nothing that leads elsewhere or has no name."""
    parts = text.removeprefix(WORKSPACE + "/").split("/")
    kept = [part for part in parts if part != "."]
    if text.startswith("/") and not text.startswith(WORKSPACE + "/"):
        return Unfit(f"a path is relative, or below {WORKSPACE}")
    if not kept or not all(kept) or ".." in kept:
        return Unfit("a path has names between its slashes, and never ..")
    if not text.isprintable():
        return Unfit("a path has printable characters only")
    if len(text.encode()) > PATH_BYTES or any(len(part.encode()) > _NAME_BYTES for part in kept):
        return Unfit(f"a path has at most {PATH_BYTES} bytes, and a name in it {_NAME_BYTES}")
    return "/".join(kept)


def folder_fault(files: Sequence[InlineFile]) -> Unfit | None:
    """Why these files cannot lie in one folder together, or None."""
    if len(files) > FILES:
        return Unfit(f"there are {len(files)} files; at most {FILES} can come inline")
    return clash(files)


def clash(files: Sequence[InlineFile]) -> Unfit | None:
    """Where two of these files are in each other's way, or None."""
    taken: dict[str, int] = {}
    for place, file in enumerate(files):
        if file.path in taken:
            return Unfit(f"two files are called {file.path}", (place, "path"))
        taken[file.path] = place
    for place, file in enumerate(files):
        above = next((folder for folder in _folders(file.path) if folder in taken), None)
        if above is not None:
            return Unfit(f"{above} is a file, so nothing can lie below it", (place, "path"))
    return None


def _folders(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def bytes_fault(files: Iterable[InlineFile]) -> Unfit | None:
    """Why these are too many bytes to come inline, or None."""
    size = sum(file.size for file in files)
    if size > INLINE_BYTES:
        return Unfit(f"the files together have {size} bytes; at most {INLINE_BYTES} can come inline")
    return None
