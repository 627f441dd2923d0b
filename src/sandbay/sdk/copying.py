"""What copying in both directions shares: the port to a sandbox's files, the report, the rules for names."""

import os
from dataclasses import dataclass, field

from sandbay.sdk.errors import RequestError
from sandbay.sdk.resources import Progress, ProgressCallback

DEEPEST = 200
"""Folders within folders; each level holds one descriptor while it is copied."""


@dataclass
class Copied:
    """What was copied. `skipped` holds `(path, why)` of links and special files, which are never copied."""

    files: int = 0
    bytes: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)


class Tally:
    """Counts what is copied and tells the callback."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self.copied = Copied()
        self._progress = progress

    def add(self, size: int) -> None:
        """Some bytes of a file went over."""
        self.copied.bytes += size
        if self._progress is not None:
            self._progress(Progress("copying", self.copied.bytes))

    def file(self) -> None:
        """A file is over."""
        self.copied.files += 1

    def skip(self, path: str, why: str) -> None:
        """Something was left out."""
        self.copied.skipped.append((path, why))


def single_name(name: str) -> str:
    """The name again, when it is one step down from a folder; raises `path_invalid` otherwise."""
    try:
        plain = name not in {"", ".", ".."} and not set(name) & {"/", "\0"} and bool(os.fsencode(name))
    except UnicodeEncodeError:
        plain = False
    if not plain:
        raise refused(f"the sandbox names a file {name!a}, which is no single name", name)
    return name


def refused(message: str, path: str) -> RequestError:
    """A path that cannot be used for copying."""
    return RequestError(message, code="path_invalid", details={"path": path})


def last_name(path: str) -> str | None:
    """The last part of a path as the caller wrote it; None when it ends in no name, as `/` and `..` do."""
    name = path.rstrip("/").rpartition("/")[2]
    return None if name in {"", ".", ".."} else name
