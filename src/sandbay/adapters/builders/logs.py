"""What builds said, as one file for each publish."""

from pathlib import Path

from sandbay.domain.ids import PublishId, kind_of
from sandbay.engine.durable import make_folder, room

_BYTES = 16 * 1024**2
_KEPT = 200
_DROPPED = "\n… more than this is not kept.\n"


class FolderBuildLogs:
    """The port `BuildLogs` in a folder."""

    def __init__(self, folder: Path, *, limit: int = _BYTES, kept: int = _KEPT) -> None:
        """`limit` bytes of each, of the `kept` newest."""
        self._folder, self._limit, self._kept = make_folder(folder), limit, kept

    def add(self, publish: PublishId, text: str) -> None:
        """See the port."""
        path = self._path(publish)
        if not path.exists():
            self._trim()
        with room(), path.open("ab") as file:
            left = self._limit - file.tell()
            data = text.encode(errors="replace")
            if left >= len(data):
                file.write(data)
            elif left > 0:
                file.write(data[:left] + _DROPPED.encode())

    def read(self, publish: PublishId, offset: int, limit: int) -> bytes:
        """See the port."""
        try:
            with self._path(publish).open("rb") as file:
                file.seek(offset)
                return file.read(limit)
        except FileNotFoundError:
            return b""

    def _path(self, publish: PublishId) -> Path:
        if kind_of(publish) != "publish":
            raise ValueError(f"{publish!r} is no publish")
        return self._folder / f"{publish}.log"

    def _trim(self) -> None:
        newest = sorted(self._folder.glob("*.log"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[self._kept - 1 :]:
            old.unlink(missing_ok=True)
