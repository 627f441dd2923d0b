"""A program that is killed while it writes: pairs that belong together, each acknowledged when it is applied."""

import sys
from pathlib import Path

from sqlalchemy import make_url

from sandbay.adapters.store.postgresql import PostgresqlStore
from sandbay.adapters.store.sqlite import SqliteStore
from sandbay.ports.changes import AddAudit, AddProject, AddUpload
from tests.contracts.store_things import entry, project, upload


def main(where: str, first: int) -> None:
    """`where` is an SQLite file or a PostgreSQL URL."""
    store = PostgresqlStore(make_url(where)) if "://" in where else SqliteStore(Path(where))
    for number in range(first, first + 100_000):
        name = f"p{number}"
        store.apply(AddProject(project(name)), AddUpload(upload(name)), AddAudit(entry(name)))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
