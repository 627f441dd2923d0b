"""A PostgreSQL server of the tests' own: a folder, a socket in it, nothing that outlives the tests."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL

from sandbay.adapters.store.migrate import migrate
from sandbay.adapters.store.tables import METADATA

_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
_SUPERUSER, OWNER, LOCKED = "postgres", "sandbay", "locked"
PASSWORD = "s3cr3t/with:odd@letters"  # noqa: S105 - of a server that lives as long as the tests
_EMPTY = "empty"
_ACCESS = f"local all {LOCKED} scram-sha-256\nlocal all all trust\n"
_SETTINGS = {"listen_addresses": "", "max_connections": "100", "unix_socket_permissions": "0777"}


def missing() -> str | None:
    """What this machine lacks to run a server, or None."""
    return None if _PROGRAMS else "postgresql (/usr/lib/postgresql/*/bin)"


class Server:
    """`start`, `kill`, start again; `close` removes everything. `fsync`: power cuts, too, are survived."""

    def __init__(self, *, fsync: bool = False) -> None:
        if (lacking := missing()) is not None:
            pytest.skip(f"this machine lacks {lacking}")
        # Not in pytest's own folder: that is 0700 of root, and the server refuses to be root.
        self.folder = Path(tempfile.mkdtemp(prefix="sandbay-pg-", dir="/var/tmp"))
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as_user = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.folder.chmod(0o711)
        # Without, what was committed is in the kernel's hands, which survives kill -9 of every process of the server.
        self._settings = {**_SETTINGS, "fsync": "on" if fsync else "off"}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()
        self._shared: URL | None = None
        try:
            self._make()
            self.start()
            self._fill()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        command: list[str | Path] = [
            _PROGRAMS[-1] / "postgres",
            "-D",
            self.folder / "data",
            "-k",
            self.folder,
            *options,
        ]
        with (self.folder / "log").open("ab") as log:
            # Should the tests themselves be killed, the kernel ends it.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "INT", *self._as_user, *command],
                stdout=log,
                stderr=log,
                cwd="/",
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                self.admin().close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """Kill -9: the postmaster and every process of it."""
        process = self._process
        assert process is not None
        process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
        self._process = None

    def stop(self) -> None:
        """End it in an orderly way, without waiting for clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """Nothing of it is left."""
        self.stop()
        shutil.rmtree(self.folder)

    def admin(self, database: str = "postgres", user: str = _SUPERUSER) -> psycopg.Connection:
        """A connection of the server's own administrator, each statement its own transaction."""
        return psycopg.connect(host=str(self.folder), user=user, dbname=database, autocommit=True)

    def database(self, *, migrated: bool = True) -> URL:
        """A new, empty database."""
        name = f"db{next(self._numbers)}"
        self._create(name, _EMPTY if migrated else "template1")
        return self.url(name)

    def emptied(self) -> URL:
        """One and the same database at each call, without a row: a new one takes as long as many tests."""
        if self._shared is None:
            self._shared = self.database()
        with self.admin(self._shared.database or "") as admin:
            admin.execute("SET session_replication_role = replica")  # no guard, and nothing refers to anything
            for table in METADATA.sorted_tables:
                admin.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))
        return self._shared

    def url(self, name: str, user: str = OWNER, password: str | None = None) -> URL:
        """Where a database is."""
        return URL.create("postgresql", user, password, database=name, query={"host": str(self.folder)})

    def drop(self, url: URL) -> None:
        """Remove a database, whoever is connected."""
        with self.admin() as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(url.database or "")))

    def copy(self, url: URL) -> URL:
        """A new database with all that is in this one."""
        name = f"db{next(self._numbers)}"
        self._create(name, url.database or "")
        return self.url(name)

    def _make(self) -> None:
        initdb: list[str | Path] = [_PROGRAMS[-1] / "initdb", "-D", self.folder / "data", "-U", _SUPERUSER, "--no-sync"]
        more = ["--encoding=UTF8", "--locale=C", "--auth=trust", "--no-instructions"]
        subprocess.run(["setpriv", *self._as_user, *initdb, *more], check=True, capture_output=True, cwd="/")
        (self.folder / "data" / "pg_hba.conf").write_text(_ACCESS)

    def _fill(self) -> None:
        with self.admin() as admin:
            admin.execute(f"CREATE ROLE {OWNER} LOGIN")
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(LOCKED), PASSWORD))
            admin.execute(f"GRANT {OWNER} TO {LOCKED}")
        self._create(_EMPTY, "template1")
        migrate(self.url(_EMPTY))

    def _create(self, name: str, template: str) -> None:
        names = (sql.Identifier(name), sql.Identifier(template), sql.Identifier(OWNER))
        with self.admin() as admin:
            admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(*names))
