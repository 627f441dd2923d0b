"""Where an installation lives and how it listens, from the environment and the command line."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.ports.provider import Reach

DEFAULT_HOME = Path("/var/lib/sandbay")
DEFAULT_RUN = Path("/run/sandbay")
DEFAULT_PORT = 8730
LOOPBACK = "127.0.0.1"
_WIDEST = 8
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
    reach: Reach = field(default_factory=Reach)
    """What sandboxes with a network reach of what is denied by itself, and whom they ask for names."""

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

    Lists, with commas: `SANDBAY_PLAIN_REGISTRIES`, the registries that are spoken to without TLS, none by itself;
    `SANDBAY_NETWORK_ALLOW`, addresses and networks that sandboxes may reach although they are the host's or private;
    `SANDBAY_NAMESERVERS`, whom sandboxes ask for names instead of the host's nameservers.
    Refuses with `invalid_body` what is no such address.
    """
    home = Path(os.environ.get("SANDBAY_HOME") or DEFAULT_HOME).absolute()
    run = Path(os.environ.get("SANDBAY_RUN") or DEFAULT_RUN).absolute()
    return Settings(
        home,
        run,
        port or DEFAULT_PORT,
        plain_registries=_listed("SANDBAY_PLAIN_REGISTRIES"),
        database_url=database or os.environ.get(DATABASE_VARIABLE) or None,
        reach=Reach(_checked("SANDBAY_NETWORK_ALLOW", _network), _checked("SANDBAY_NAMESERVERS", _nameserver)),
    )


def _listed(variable: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, os.environ.get(variable, "").split(","))))


def _checked(variable: str, check: Callable[[str], str]) -> tuple[str, ...]:
    found = []
    for word in _listed(variable):
        try:
            found.append(check(word))
        except ValueError as error:
            raise RefusedError(Reason.INVALID_BODY, f"{variable}: {error}", param=variable) from None
    return tuple(found)


def _network(word: str) -> str:
    network = IPv4Network(word)
    if network.prefixlen < _WIDEST:
        raise ValueError(f"{word} is so wide that nothing would be denied; name networks of /{_WIDEST} or narrower")
    return str(network)


def _nameserver(word: str) -> str:
    address = IPv4Address(word)
    if address.is_loopback or address.is_multicast or address.is_unspecified:
        raise ValueError(f"{word} is an address that a sandbox cannot ask; name one that is no loopback")
    return str(address)
