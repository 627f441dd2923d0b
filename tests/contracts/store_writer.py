"""A program that is killed while it writes: pairs that belong together, each acknowledged when it is applied."""

import sys
from pathlib import Path

from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.ports.changes import AddAudit, AddProject, AddUpload
from tests.contracts.store_things import entry, project, upload


def main(path: str, first: int) -> None:
    store = SqliteStore(Path(path))
    for number in range(first, first + 100_000):
        name = f"p{number}"
        store.apply(AddProject(project(name)), AddUpload(upload(name)), AddAudit(entry(name)))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
