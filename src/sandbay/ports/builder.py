"""What turns a context and a Containerfile into an image. `tests/contracts/builder_suite.py` is this contract.

Contract: equal orders on equal bases give equal bytes as far as what RUN does allows; the base's layers stay as they
are, blob by blob, under the new ones. A build reads its context and the bases it is handed and no other file of the
host. However it ends, nothing of it is left: no process, no mount, no file but the result. Bounds are the builder's
own (memory, processes, time); what exceeds them is `build_failed`.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandbay.domain.containerfile import Containerfile
from sandbay.domain.ids import PublishId
from sandbay.domain.platform import Platform
from sandbay.domain.publish import Bootstrap
from sandbay.domain.release import Variant
from sandbay.ports.blobs import Blobs
from sandbay.ports.image_source import ImageSource


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One entry of a context. `kind` is file, program (executable), folder or link; `content` its digest or target."""

    path: str
    kind: str
    content: str


class Context(Protocol):
    """A received folder. Names lead nowhere but into it, and so do its links."""

    def files(self) -> Sequence[ContextFile]:
        """Everything in it, sorted by path."""

    def read(self, path: str, limit: int) -> bytes | None:
        """A file's bytes, `limit` + 1 at most; None when there is no such file."""

    def unpack(self, folder: Path) -> None:
        """Write it into an empty folder: owner 0, modes 0755 and 0644. Refuses with `no_space`."""


@dataclass(frozen=True)
class BuildOrder:
    """What to build. `bases` says, for each of `containerfile.images`, what it is: verified, its blobs in `blobs`.

    `key` names the result: the digest of the inputs. With `rebuild`, what is kept under it is not answered.
    """

    publish: PublishId
    key: str
    platform: Platform
    context: Context
    containerfile: Containerfile
    bases: Mapping[str, Variant | Bootstrap]
    blobs: Blobs
    rebuild: bool = False


Say = Callable[[str], None]
"""Takes the log, in pieces of text."""


class Builder(Protocol):
    """Builds for this host's platform."""

    @property
    def version(self) -> str:
        """Changes whenever the same inputs would give other bytes."""

    def build(self, order: BuildOrder, say: Say, cancel: threading.Event) -> AbstractContextManager[ImageSource]:
        """Build, and hand the image out as a source as long as the context manager is entered.

        Refuses with `build_failed` (details: `step`, `exit_code`, `output`), `cancelled` once `cancel` is set,
        `host_unfit` (details: `missing` programs), `no_space`, `platform_mismatch`.
        """


class BuildLogs(Protocol):
    """What builds said, by publish. Only so many bytes of each are kept, and only of the newest."""

    def add(self, publish: PublishId, text: str) -> None:
        """Append. What is beyond the bound is dropped, which the log says once."""

    def read(self, publish: PublishId, offset: int, limit: int) -> bytes:
        """Bytes from `offset` on; empty at the end, and where there is no log (any more)."""
