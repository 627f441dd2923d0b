"""Files of a sandbox. Names need not be UTF-8: other bytes travel as surrogate escapes."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SkipValidation, WithJsonSchema

from sandbay.api.wire.base import In, Listing, Out
from sandbay.ports.provider import FileEntry, FileKind

PATH_BYTES = 4096


def checked_path(text: object) -> str:
    """A path that can be one. Raises ValueError."""
    if not isinstance(text, str) or not text:
        raise ValueError("a path is a text that is not empty")
    if "\0" in text:
        raise ValueError("a path has no NUL")
    try:
        size = len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise ValueError("the path is no text") from error
    if size > PATH_BYTES:
        raise ValueError(f"a path has at most {PATH_BYTES} bytes")
    return text


RawText = Annotated[str, SkipValidation(), WithJsonSchema({"type": "string"})]
PathText = Annotated[Any, BeforeValidator(checked_path), WithJsonSchema({"type": "string", "minLength": 1})]


class MoveIn(In):
    """A rename within the sandbox."""

    source: PathText = Field(description="What to move.")
    target: PathText = Field(description="Where to.")


class FileOut(Out):
    """What is at a path."""

    name: RawText = Field(description="The last part of the path; undecodable bytes as surrogate escapes.")
    kind: FileKind = Field(description="What it is; links are not followed.")
    size: int = Field(description="Bytes.")
    mode: int = Field(description="Permission bits, as a number.")
    uid: int = Field(description="The owner inside the sandbox.")
    gid: int = Field(description="The group inside the sandbox.")
    mtime: float = Field(description="Seconds since 1970.")
    target: RawText | None = Field(description="Where a link points.")


class FileList(Listing[FileOut]):
    """The entries of a folder, by the bytes of their names."""


def file_out(entry: FileEntry) -> FileOut:
    """From the port."""
    return FileOut(
        name=entry.name,
        kind=entry.kind,
        size=entry.size,
        mode=entry.mode,
        uid=entry.uid,
        gid=entry.gid,
        mtime=entry.mtime,
        target=entry.target,
    )


def cursor(entry: FileEntry) -> str:
    """Orders by bytes and is ASCII, whatever the name is."""
    return entry.name.encode("utf-8", "surrogateescape").hex()
