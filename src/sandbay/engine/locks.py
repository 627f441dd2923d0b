"""Advisory locks on files: they join threads and processes alike, and end with their holder, however it ends."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """One holder's view of a lock; closing it lets go."""

    def __init__(self, path: Path, *, folder: bool = False) -> None:
        """Open the lock without taking it. A file is made where there is none, a folder has to be there."""
        flags = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR | os.O_CREAT
        self._fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def share(self) -> None:
        """Hold it together with others. Waits while somebody owns it; an owner gives way to sharing."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def own(self) -> None:
        """Hold it alone. Waits."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def try_own(self) -> bool:
        """Hold it alone if nobody else holds it. When they do, a share that was held is lost."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Let go."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
