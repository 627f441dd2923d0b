"""What is durable of each allocation: one folder, one record, written before anything else is made.

`<sandboxes>/<allocation>/` appears with its record in one rename and disappears with it last, so at every moment
in between, whatever exists of an allocation is listed and can be freed. All folders 0700, owned by root.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbay.domain.canonical import plain, rebuild
from sandbay.domain.declaration import Network
from sandbay.domain.deployment import SandboxSize
from sandbay.domain.ids import AllocationId
from sandbay.domain.release import ContentKey

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_RECORD = "allocation.json"
_STARTED = "started"


@dataclass(frozen=True)
class AllocationRecord:
    """Who owns it, what it was assembled from, its id range, limits and networks, and its commands' environment.

    `networks`: what it starts with, and what it may be given later.
    """

    installation: str
    allocation: str
    hostname: str
    key: ContentKey
    base: int
    size: SandboxSize
    env: Mapping[str, str] = field(default_factory=dict)
    networks: tuple[Network, ...] = (Network.DISABLED,)

    @property
    def networked(self) -> bool:
        """Whether it ever has a network."""
        return any(mode is not Network.DISABLED for mode in self.networks)


class AllocationFolders:
    """The folders of one installation below `root`; what carries another installation's label is never touched."""

    def __init__(self, root: Path, installation: str) -> None:
        """Make the root where it is new."""
        self._root = root
        self._installation = installation
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._owned = -1

    def own(self) -> bool | None:
        """Try to be the one process that makes and ends allocations here; it stays so until `close` or its end.

        True when it has just become that, False when it was before, None while another process is.
        """
        if self.owned:
            return False
        fd = os.open(self._root / ".owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        self._owned = fd
        for left in self._root.glob(".new-*"):
            shutil.rmtree(left, ignore_errors=True)
        return True

    @property
    def owned(self) -> bool:
        """Whether this object has them."""
        return self._owned >= 0

    def close(self) -> None:
        """Let another process own the folders."""
        if self.owned:
            os.close(self._owned)
        self._owned = -1

    def folder(self, allocation: str) -> Path:
        """Its folder. Raises `ValueError` for what cannot be a folder's name."""
        if not _NAME.fullmatch(allocation):
            raise ValueError(f"{allocation!r} is no allocation id")
        return self._root / allocation

    def add(self, record: AllocationRecord) -> Path:
        """Make an allocation's folder, durable with its record. Raises `FileExistsError`."""
        folder = self.folder(record.allocation)
        if folder.exists():
            raise FileExistsError(folder)
        new = self._root / f".new-{secrets.token_hex(8)}"
        new.mkdir(mode=0o700)
        fd = os.open(new / _RECORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump(plain(record), file)
            file.flush()
            os.fsync(fd)
        new.rename(folder)
        _sync(self._root)
        return folder

    def read(self, allocation: str) -> AllocationRecord | None:
        """Its record, or None when there is none of this installation."""
        try:
            text = (self.folder(allocation) / _RECORD).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        record = rebuild(AllocationRecord, json.loads(text))
        return record if record.installation == self._installation else None

    def is_foreign(self, allocation: str) -> bool:
        """Whether a folder of this name exists that is not this installation's."""
        return (self.folder(allocation) / _RECORD).exists() and self.read(allocation) is None

    def all(self) -> Sequence[AllocationRecord]:
        """Every record of this installation."""
        names = sorted(path.name for path in self._root.iterdir() if _NAME.fullmatch(path.name))
        return [record for name in names if (record := self.read(name)) is not None]

    def bases(self) -> set[int]:
        """The first ids of all ranges in use, other installations' in the same place included."""
        records = self._root.glob(f"*/{_RECORD}")
        return {int(json.loads(path.read_text())["base"]) for path in records}

    def mark_started(self, allocation: str) -> None:
        """From now on it has run, and is never made anew."""
        (self.folder(allocation) / _STARTED).touch()

    def has_started(self, allocation: str) -> bool:
        """Whether it has ever run."""
        return (self.folder(allocation) / _STARTED).exists()

    def remove(self, allocation: AllocationId | str) -> None:
        """Drop everything; the record goes last."""
        folder = self.folder(allocation)
        if not folder.exists():
            return
        inner = [str(path) for path in folder.iterdir() if path.name != _RECORD]
        if inner:
            # rm, because what a sandbox left behind may be nested deeper than Python can follow.
            subprocess.run(["rm", "-rf", "--one-file-system", "--", *inner], check=True, stdin=subprocess.DEVNULL)
        (folder / _RECORD).unlink(missing_ok=True)
        folder.rmdir()
        _sync(self._root)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
