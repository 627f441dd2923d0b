"""What a root file system looks like to a sandbox that runs: `python -m tests.support.seen_inside PID FIXTURE`.

PID is the sandbox's first process. Prints a JSON list of what is not as the fixture's `expected.json` has it.
Owners are those of the sandbox's own user namespace.
"""

import json
import os
import sys
from pathlib import Path

from sandbay.engine import linux
from tests.support.right_answer import FIXTURES, differences, expected_of, marks


def main(pid: str, fixture: str) -> None:
    """Enter by descriptors that were opened before: inside, nothing of the host is to be had."""
    expected = expected_of(FIXTURES / fixture)
    root = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY)
    namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    os.fchdir(root)
    linux.setns(namespace, linux.CLONE_NEWUSER)
    here = Path()
    json.dump([*differences(here, expected), *(f"{path} is listed" for path in marks(here))], sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
