"""What is left of a program that was killed while it wrote (`store_writer`)."""

import signal
import subprocess
import sys
from pathlib import Path

from sandbay.domain.ids import UploadId
from sandbay.ports.store import Audit, ProjectOf, Projects, Store, UploadOf
from tests.contracts.store_things import ALL

_ROOT = Path(__file__).resolve().parents[2]


def writer(where: str, first: int) -> subprocess.Popen[str]:
    """It writes numbered pairs, and prints each number when it was told that it is applied."""
    program = [sys.executable, "-m", "tests.contracts.store_writer", where, str(first)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT)


def killed_while_writing(where: str, first: int, after: int) -> int:
    """The last number that the writer was told was applied before kill -9."""
    with writer(where, first) as it:
        assert it.stdout is not None
        last = first - 1
        for line in it.stdout:
            last = int(line)
            if last == first + after:
                it.send_signal(signal.SIGKILL)
    assert it.returncode == -signal.SIGKILL
    return last


def whole_after(store: Store, last: int) -> int:
    """See that all up to `last` is there and everything is whole; the next number to write."""
    names = {it.name for it in store.read(Projects())}
    audited = {it.id.removeprefix("aud_") for it in store.read(Audit(page=ALL))}
    uploaded = {name for name in names | audited if store.read(UploadOf(UploadId(f"upl_{name}")))}
    following = store.read(ProjectOf(f"p{last + 1}"))
    assert names == audited == uploaded
    assert {f"p{number}" for number in range(last + 1)} <= names
    assert len(names) <= last + 2, "more than the one whose answer was lost"
    return last + 1 if following is None else last + 2
