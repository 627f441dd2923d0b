"""SQLite files for the store's tests."""

import functools
import tempfile
from pathlib import Path

from sandbay.adapters.store.migrate import migrate


@functools.cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        migrate(path)
        return path.read_bytes()


def new_database(path: Path) -> Path:
    """A migrated, empty database at the path."""
    path.write_bytes(_migrated())
    return path
