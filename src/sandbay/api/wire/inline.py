"""Files that come in a request."""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from sandbay.api.wire.base import In, Out
from sandbay.domain.inline import (
    FILES,
    INLINE_BYTES,
    Encoding,
    InlineFile,
    Unfit,
    bytes_fault,
    folder_fault,
    inline_file,
)

Fit = TypeVar("Fit")


class InlineFileIn(In):
    """A file with its bytes."""

    path: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        description="Relative to its folder; no path leads out of it. Of a Template or Session: below /workspace."
    )
    encoding: Annotated[Encoding, Field(strict=False)] = Field(
        default=Encoding.TEXT, description="How `content` stands for bytes."
    )
    content: str = Field(description="The text, or base64 of the bytes.")
    executable: bool = Field(default=False, description="Whether it may be run.")

    @field_validator("path")
    @classmethod
    def _leads_nowhere_else(cls, path: str) -> str:
        return fitting(inline_file(path, "", Encoding.TEXT, executable=False)).path

    @field_validator("content")
    @classmethod
    def _decodes(cls, content: str, info: ValidationInfo) -> str:
        fitting(inline_file("file", content, info.data.get("encoding", Encoding.TEXT), executable=False))
        return content

    def file(self) -> InlineFile:
        """As the domain has it."""
        return fitting(inline_file(self.path, self.content, self.encoding, executable=self.executable))


def fitting(outcome: Fit | Unfit) -> Fit:
    """What fits; raises ValueError for what does not."""
    if isinstance(outcome, Unfit):
        raise ValueError(outcome.why)  # noqa: TRY004 - pydantic takes a ValueError for a "no"
    return outcome


def files_of(files: list[InlineFileIn]) -> tuple[InlineFile, ...]:
    """As the domain has them."""
    return tuple(file.file() for file in files)


def _together(files: list[InlineFileIn]) -> list[InlineFileIn]:
    made = files_of(files)
    fault = folder_fault(made) or bytes_fault(made)
    if fault is not None:
        raise ValueError(fault.why)
    return files


InlineFiles = Annotated[list[InlineFileIn], Field(max_length=FILES), AfterValidator(_together)]
FILES_TOLD = f"At most {FILES}, with {INLINE_BYTES // 1024**2} MiB together."


class InlineFileOut(Out):
    """A file that came in a request."""

    path: str = Field(description="Relative to its folder.")
    size: int = Field(description="Bytes.")
    encoding: Encoding = Field(description="How `content` stands for bytes.")
    content: str | None = Field(description="The text, or base64 of the bytes; null in lists.")
    executable: bool = Field(description="Whether it may be run.")


def files_out(files: tuple[InlineFile, ...]) -> list[InlineFileOut]:
    """From the domain."""
    return [
        InlineFileOut(path=it.path, size=it.size, encoding=it.encoding, content=it.content, executable=it.executable)
        for it in files
    ]
