"""The files outside of every image that hostile layers aim at."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

PATH = Path("/tmp/rfx-canary")
_FILES = {"victim": "intact\n", "passwd": "root2:x:4343:4343::/:/x\n", "sub/keep": "keep\n"}


@contextlib.contextmanager
def canary() -> Iterator[Path]:
    """Lay it out; at the end it must be as it was. One process at a time, since its place is fixed in the fixtures."""
    lock = os.open(PATH.parent, os.O_RDONLY | os.O_DIRECTORY)  # other checkouts on this machine have the same place
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PATH, ignore_errors=True)
        for name, content in _FILES.items():
            (PATH / name).parent.mkdir(parents=True, exist_ok=True)
            (PATH / name).write_text(content)
            (PATH / name).chmod(0o644)
        before = _state()
        yield PATH
        assert _state() == before, "something outside of the image was touched"
    finally:
        shutil.rmtree(PATH, ignore_errors=True)
        os.close(lock)


def _state() -> dict[str, tuple[int, ...] | str]:
    state: dict[str, tuple[int, ...] | str] = {}
    for path in (PATH, *PATH.rglob("*")):
        status = path.lstat()
        state[str(path)] = (status.st_mode, status.st_nlink, status.st_uid, status.st_gid, status.st_mtime_ns)
        if path.is_file() and not path.is_symlink():
            state[f"{path} says"] = path.read_text()
    return state
