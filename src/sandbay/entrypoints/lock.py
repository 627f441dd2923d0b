"""One process per installation: a locked file that holds its pid. The lock, not the pid, says who lives."""

import fcntl
import os
import time
from pathlib import Path
from typing import Self


class InstallationLock:
    """Held while the process serves; the kernel lets go of it however the process ends."""

    def __init__(self, path: Path) -> None:
        """Nothing is locked yet."""
        self._path = path
        self._fd: int | None = None

    def take(self) -> Self | None:
        """Take it and write our pid, or None when another process has it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        self._fd = fd
        return self

    def release(self) -> None:
        """Let go."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holder(self) -> int | None:
        """The pid of the process that holds it, or None when nobody does."""
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.read(fd, 32).decode(errors="replace").strip()
            return int(text) if text.isdigit() else None
        else:
            return None
        finally:
            os.close(fd)

    def wait_free(self, seconds: float) -> bool:
        """Whether nobody holds it any more within this time."""
        deadline = time.monotonic() + seconds
        while self.holder() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
