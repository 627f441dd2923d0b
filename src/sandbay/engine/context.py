"""A received build context: a tar of a folder, judged whole before anything is written, and unpacked with plain owners.

Modes come down to executable or not, so that the umask of whoever cloned a repository changes no image.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.engine.archive import Archive, malformed
from sandbay.engine.digest import chunks_of
from sandbay.engine.durable import room
from sandbay.engine.limits import Limits, exceeded
from sandbay.engine.tar import Entry, Kind
from sandbay.ports.builder import ContextFile

_EXECUTABLE = 0o100
_KINDS = {Kind.FOLDER: "folder", Kind.SYMLINK: "link"}


class ArchiveContext:
    """The port's `Context` over an uploaded tar."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        """Read the headers. Refuses with `malformed_archive`, `unsafe_link` or `limit_exceeded`."""
        self._limits = limits or Limits()
        self._archive = Archive(path, self._limits)
        self._entries = {os.fsdecode(name): entry for name, entry in self._archive.entries.items() if name}
        try:
            self._check()
        except BaseException:
            self._archive.close()
            raise

    def close(self) -> None:
        """Let go of the upload."""
        self._archive.close()

    def files(self) -> Sequence[ContextFile]:
        """See the port."""
        return [ContextFile(name, *self._content(entry)) for name, entry in sorted(self._entries.items())]

    def read(self, path: str, limit: int) -> bytes | None:
        """See the port."""
        entry = self._entries.get(path)
        if entry is None or entry.kind is not Kind.FILE:
            return None
        with self._archive.open((entry.data_at, entry.stored)) as file:
            return file.read(limit + 1)

    def unpack(self, folder: Path) -> None:
        """See the port. Nothing in it is a link until everything else is written, so none is followed."""
        links = {name: entry for name, entry in self._entries.items() if entry.kind is Kind.SYMLINK}
        with room():
            for name, entry in sorted(self._entries.items()):
                if name not in links:
                    self._write(folder / name, entry)
            for name, entry in links.items():
                (folder / name).symlink_to(os.fsdecode(entry.link))

    def _check(self) -> None:
        total = sum(entry.stored for entry in self._entries.values())
        if total > self._limits.unpacked_bytes:
            raise RefusedError.of(exceeded("unpacked_bytes", total, self._limits.unpacked_bytes))
        for name, entry in self._entries.items():
            if entry.kind is Kind.HARD_LINK:
                raise malformed("a member is a hard link")
            above = "/".join(name.split("/")[:-1])
            parent = self._entries.get(above)
            if above and (parent is None or parent.kind is not Kind.FOLDER):
                raise malformed("a member stands in no folder")
            if entry.kind is Kind.SYMLINK and _leads_out(name, os.fsdecode(entry.link)):
                message = f"the link {name[:200]} leads out of the context"
                raise RefusedError(Reason.UNSAFE_LINK, message, details={"path": name[:200]})

    def _content(self, entry: Entry) -> tuple[str, str]:
        if entry.kind is not Kind.FILE:
            return _KINDS[entry.kind], os.fsdecode(entry.link)
        digest = hashlib.sha256()
        with self._archive.open((entry.data_at, entry.stored)) as file:
            for chunk in chunks_of(file):
                digest.update(chunk)
        return "program" if entry.mode & _EXECUTABLE else "file", f"sha256:{digest.hexdigest()}"

    def _write(self, path: Path, entry: Entry) -> None:
        if entry.kind is Kind.FOLDER:
            path.mkdir(mode=0o755)
            path.chmod(0o755)
            return
        mode = 0o755 if entry.mode & _EXECUTABLE else 0o644
        with self._archive.open((entry.data_at, entry.stored)) as file, path.open("xb") as target:
            for chunk in chunks_of(file):
                target.write(chunk)
        path.chmod(mode)


def _leads_out(name: str, target: str) -> bool:
    """Whether following a link could leave the context.

    Its own folder is a real one, so as many leading `..` as that is deep are fine. One that comes later could climb
    from wherever another link leads.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    return target.startswith("/") or up > name.count("/") or ".." in parts[up:]
