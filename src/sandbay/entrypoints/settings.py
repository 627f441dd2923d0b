"""Where an installation lives and how it listens, from the environment and the command line."""

import os
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_HOME = Path("/var/lib/sandbay")
DEFAULT_RUN = Path("/run/sandbay")
DEFAULT_PORT = 8730
LOOPBACK = "127.0.0.1"
DATABASE_VARIABLE = "SANDBAY_DATABASE"
"""Where `--database` may stand instead: what is on a command line every user of the host can read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One process: Core, and with `up` one local node.

    `database_url` None means the SQLite file in `home`. It may hold a password and is shown nowhere.
    """

    home: Path
    run: Path
    port: int = DEFAULT_PORT
    provider: str = "oci"
    plain_registries: tuple[str, ...] = ()
    """Registries that are spoken to without TLS, and addresses that they may lead to so; as host or host:port."""
    database_url: str | None = field(default=None, repr=False)
    build_cache: Path | None = None
    """Where what was built is kept for other installations on this host; None: nowhere."""

    @property
    def url(self) -> str:
        """Where clients on this host find it."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def database(self) -> Path:
        """The SQLite file, where no URL says otherwise."""
        return self.home / "sandbay.db"

    @property
    def context(self) -> Path:
        """Address and keys for the command line on this host."""
        return self.home / "context.json"

    @property
    def key(self) -> Path:
        """Opens the secrets in the database."""
        return self.home / "secrets.key"

    @property
    def lock(self) -> Path:
        """Held by the process that serves this installation; holds its pid."""
        return self.home / "lock"

    @property
    def log(self) -> Path:
        """Where a detached process writes."""
        return self.home / "log" / "sandbay.log"


def settings(port: int | None = None, database: str | None = None) -> Settings:
    """`SANDBAY_HOME`, `SANDBAY_RUN`, under which lives what is mounted, and `SANDBAY_DATABASE`.

    `SANDBAY_PLAIN_REGISTRIES` lists, with commas, the registries that are spoken to without TLS: none by itself.
    `SANDBAY_BUILD_CACHE` is a folder that keeps what was built, so that a new installation need not build it again.
    """
    home = Path(os.environ.get("SANDBAY_HOME") or DEFAULT_HOME).absolute()
    run = Path(os.environ.get("SANDBAY_RUN") or DEFAULT_RUN).absolute()
    plain = os.environ.get("SANDBAY_PLAIN_REGISTRIES", "").split(",")
    return Settings(
        home,
        run,
        port or DEFAULT_PORT,
        plain_registries=tuple(filter(None, map(str.strip, plain))),
        database_url=database or os.environ.get(DATABASE_VARIABLE) or None,
        build_cache=Path(cache).absolute() if (cache := os.environ.get("SANDBAY_BUILD_CACHE")) else None,
    )
