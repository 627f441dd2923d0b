"""How far a prepare is: counted from several threads, told in order."""

import threading
from collections.abc import Mapping

from sandbay.ports.provider import Phase, PrepareProgress, Progress


class Meter:
    """Counts the bytes of an image's blobs, each blob once, however often it is read."""

    def __init__(self, progress: Progress, sizes: Mapping[str, int]) -> None:
        """Take whom to tell, and the size of each blob by digest."""
        self._progress, self._sizes = progress, sizes
        self._done = dict.fromkeys(sizes, 0)
        self._phase = Phase.FETCH
        self._lock = threading.Lock()

    def enter(self, phase: Phase) -> None:
        """Begin a phase."""
        with self._lock:
            self._phase = phase
            self._tell()

    def read(self, digest: str, count: int) -> None:
        """So many more bytes of a blob have been read."""
        self._set(digest, min(self._done[digest] + count, self._sizes[digest]))

    def finish(self, digest: str) -> None:
        """Nothing of a blob is left to be read."""
        self._set(digest, self._sizes[digest])

    def _set(self, digest: str, done: int) -> None:
        with self._lock:
            self._done[digest] = max(done, self._done[digest])
            self._tell()

    def _tell(self) -> None:
        self._progress(PrepareProgress(self._phase, sum(self._done.values()), sum(self._sizes.values())))
