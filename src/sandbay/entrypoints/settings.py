"""Where an installation lives and how it listens, from the environment and the command line."""

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from sandbay.domain.disk import DiskBudget
from sandbay.domain.errors import RefusedError
from sandbay.domain.life import LONGEST, NO_LIMIT, SHORTEST, Life
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, parse_oci
from sandbay.domain.registry import Credentials
from sandbay.engine.limits import MOST_LAYERS, SETTABLE
from sandbay.ports.provider import Reach

DEFAULT_HOME = Path("/var/lib/sandbay")
DEFAULT_RUN = Path("/run/sandbay")
DEFAULT_PORT = 8730
LOOPBACK = "127.0.0.1"
_WIDEST = 8
DATABASE_VARIABLE = "SANDBAY_DATABASE"
"""Where `--database` may stand instead: what is on a command line every user of the host can read."""

PROVIDERS_VARIABLE = "SANDBAY_PROVIDERS"
DEFAULT_PROVIDERS = ("oci",)
BLOBS_VARIABLE = "SANDBAY_BLOBS"
BUDGET_VARIABLE, MARKS_VARIABLE = "SANDBAY_STORE_BUDGET", "SANDBAY_STORE_MARKS"
_WHOLE = 100
_TIMES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_UNITS = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
RETENTION_VARIABLE = "SANDBAY_SNAPSHOT_RETENTION"
_MOST_DAYS = 3650
IDLE_VARIABLE, LIFE_VARIABLE = "SANDBAY_IDLE_TIMEOUT", "SANDBAY_SESSION_LIFE"
RATE_VARIABLE = "SANDBAY_REQUESTS_PER_SECOND"
LIMITS_VARIABLE = "SANDBAY_IMAGE_LIMITS"
_BLOBS_LOGIN = ("SANDBAY_BLOBS_USERNAME", "SANDBAY_BLOBS_PASSWORD")
_BLOBS_SCHEME, _BLOBS_FOLDER = "oci://", "/blobs"


@dataclass(frozen=True, slots=True)
class Settings:
    """One process: Core, and with `up` one local node.

    `database_url` None means the SQLite file in `home`. It may hold a password and is shown nowhere.
    """

    home: Path
    run: Path
    port: int = DEFAULT_PORT
    providers: tuple[str, ...] = DEFAULT_PROVIDERS
    """What this host runs sandboxes with: a local node for each."""
    runtime: str = "auto"
    """What the local node starts sandboxes with; `auto` is what the provider finds best on this host."""
    plain_registries: tuple[str, ...] = ()
    """Registries that are spoken to without TLS, and addresses that they may lead to so; as host or host:port."""
    database_url: str | None = field(default=None, repr=False)
    build_cache: Path | None = None
    """Where what was built is kept for other installations on this host; None: nowhere."""
    blobs: OciReference | None = None
    """The repository that holds the image bytes; None means a folder in `home`."""
    blobs_login: Credentials | None = None
    """Goes before what is kept for that registry."""
    reach: Reach = field(default_factory=Reach)
    """What sandboxes with a network reach of what is denied by itself, and whom they ask for names."""
    store_budget: DiskBudget = field(default_factory=DiskBudget)
    """What the images may take of this node's disk."""
    image_limits: Mapping[str, int] = field(default_factory=dict)
    """Bounds on one image, by name (`engine.limits`), where they are not the usual ones."""
    life: Life = NO_LIMIT
    """What Sessions have that ask for no other; none has more."""
    snapshot_retention: timedelta | None = None
    """How long the state of suspended Sessions is kept; None: as long as is usual."""
    requests_per_second: float | None = None
    """Of one API key, when they go on; 0 means no limit, None what is usual."""

    @property
    def url(self) -> str:
        """Where clients on this host find it."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What another process has to be told to serve the same, beside where it lives."""
        said = {DATABASE_VARIABLE: self.database_url}
        if self.blobs is not None:
            said[BLOBS_VARIABLE] = _BLOBS_SCHEME + f"{self.blobs.domain}/{self.blobs.path}".removesuffix(_BLOBS_FOLDER)
        return {name: value for name, value in said.items() if value is not None}

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


def settings(port: int | None = None, database: str | None = None, blobs: str | None = None) -> Settings:
    """`SANDBAY_HOME`, `SANDBAY_RUN`, under which lives what is mounted, `SANDBAY_DATABASE` and `SANDBAY_BLOBS`.

    Lists, with commas: `SANDBAY_PLAIN_REGISTRIES`, the registries that are spoken to without TLS, none by itself;
    `SANDBAY_NETWORK_ALLOW`, addresses and networks that sandboxes may reach although they are the host's or private;
    `SANDBAY_NAMESERVERS`, whom sandboxes ask for names instead of the host's nameservers;
    `SANDBAY_PROVIDERS`, what this host runs sandboxes with, a local node for each, `oci` where nothing is said.
    `SANDBAY_BUILD_CACHE` is a folder that keeps what was built, so that a new installation need not build it again.
    `SANDBAY_BLOBS_USERNAME` and `SANDBAY_BLOBS_PASSWORD` may say who we are to the registry that holds the blobs.
    `SANDBAY_RUNTIME` names the runtime of the local node (crun, runc), which has to prove itself on this host.
    `SANDBAY_STORE_BUDGET` is what the images of the node may take of its disk, as `40GiB` or `80%`, and
    `SANDBAY_STORE_MARKS`, as `90,75`, above how many percent of that the longest unused go, until how many are left.
    `SANDBAY_IMAGE_LIMITS` sets bounds on one image, as `unpacked_bytes=200GiB,layers=200`; a refusal names the bound.
    `SANDBAY_IDLE_TIMEOUT` and `SANDBAY_SESSION_LIFE`, as `30m` and `8h`, are after how long unused Sessions end and how
    long any lives; they hold for whoever asks for nothing, and nobody gets more.
    `SANDBAY_SNAPSHOT_RETENTION` is for how many days suspended state is kept, 30 if nothing is said.
    `SANDBAY_REQUESTS_PER_SECOND` bounds how often one API key may ask; 0 means no limit.
    Refuses with `invalid_reference` what is no place for blobs, with `invalid_body` what is no such address, rate,
    size, bound, time or marks.
    """
    home = Path(os.environ.get("SANDBAY_HOME") or DEFAULT_HOME).absolute()
    run = Path(os.environ.get("SANDBAY_RUN") or DEFAULT_RUN).absolute()
    return Settings(
        home,
        run,
        port or DEFAULT_PORT,
        plain_registries=_listed("SANDBAY_PLAIN_REGISTRIES"),
        database_url=database or os.environ.get(DATABASE_VARIABLE) or None,
        build_cache=Path(cache).absolute() if (cache := os.environ.get("SANDBAY_BUILD_CACHE")) else None,
        blobs=blobs_place(place) if (place := blobs or os.environ.get(BLOBS_VARIABLE)) else None,
        blobs_login=_blobs_login(),
        providers=tuple(dict.fromkeys(_listed(PROVIDERS_VARIABLE))) or DEFAULT_PROVIDERS,
        runtime=os.environ.get("SANDBAY_RUNTIME") or "auto",
        store_budget=_budget(os.environ.get(BUDGET_VARIABLE), os.environ.get(MARKS_VARIABLE)),
        image_limits=dict(map(_bound, _listed(LIMITS_VARIABLE))),
        life=Life(_seconds(IDLE_VARIABLE), _seconds(LIFE_VARIABLE)),
        snapshot_retention=_days(RETENTION_VARIABLE),
        requests_per_second=_rate(os.environ.get(RATE_VARIABLE)),
        reach=Reach(_checked("SANDBAY_NETWORK_ALLOW", _network), _checked("SANDBAY_NAMESERVERS", _nameserver)),
    )


def _blobs_login() -> Credentials | None:
    username, password = (os.environ.get(name) for name in _BLOBS_LOGIN)
    return Credentials(username, password) if username and password else None


def _budget(size: str | None, marks: str | None) -> DiskBudget:
    budget = DiskBudget()
    if size:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(%|[KMGT]iB|)", size.strip())
        number, unit = (float(found[1]), found[2]) if found else (0.0, "")
        if number <= 0 or (unit == "%" and number > _WHOLE):
            message = f"{BUDGET_VARIABLE} must be bytes (40GiB) or a share of the disk (80%)"
            raise RefusedError(Reason.INVALID_BODY, message, param=BUDGET_VARIABLE)
        granted = {"share": number / _WHOLE} if unit == "%" else {"bytes": round(number * _UNITS[unit])}
        budget = replace(budget, **granted)
    if marks:
        numbers = re.fullmatch(r"(\d+) *, *(\d+)", marks.strip())
        high, low = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
        if not 0 < low <= high <= _WHOLE:
            message = f"{MARKS_VARIABLE} must be two percentages of the budget, the higher first, as 90,75"
            raise RefusedError(Reason.INVALID_BODY, message, param=MARKS_VARIABLE)
        budget = replace(budget, high=high / _WHOLE, low=low / _WHOLE)
    return budget


def _bound(text: str) -> tuple[str, int]:
    """`NAME=VALUE`, a whole number or a size."""
    name, _, value = text.partition("=")
    found = re.fullmatch(r"(\d{1,15})([KMGT]iB|)", value.strip())
    bound = int(found[1]) * _UNITS[found[2]] if found else 0
    if name.strip() not in SETTABLE or bound < 1 or (name.strip() == "layers" and bound > MOST_LAYERS):
        message = f"{LIMITS_VARIABLE} is NAME=VALUE, with commas; names are {', '.join(sorted(SETTABLE))}"
        raise RefusedError(Reason.INVALID_BODY, message, param=LIMITS_VARIABLE)
    return name.strip(), bound


def _seconds(variable: str) -> int | None:
    """A time, as `90`, `30m`, `8h` or `7d`."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,9})([smhd]?)", text)
    seconds = int(found[1]) * _TIMES[found[2]] if found else 0
    if not SHORTEST <= seconds <= LONGEST:
        message = f"{variable} must be a time from {SHORTEST} s to {LONGEST // _TIMES['d']} d, as 90, 30m, 8h or 7d"
        raise RefusedError(Reason.INVALID_BODY, message, param=variable)
    return seconds


def _days(variable: str) -> timedelta | None:
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    days = int(text) if re.fullmatch(r"\d{1,4}", text) else 0
    if not 1 <= days <= _MOST_DAYS:
        message = f"{variable} must be a number of days, from 1 to {_MOST_DAYS}"
        raise RefusedError(Reason.INVALID_BODY, message, param=variable)
    return timedelta(days=days)


def _rate(text: str | None) -> float | None:
    if not text:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < math.inf:
        raise RefusedError(Reason.INVALID_BODY, f"{RATE_VARIABLE} must be a number, 0 or more", param=RATE_VARIABLE)
    return rate


def blobs_place(text: str) -> OciReference:
    """`oci://HOST[:PORT]/PREFIX` is the repository `PREFIX/blobs`. The text is never quoted: it may hold a password."""
    named = text.removeprefix(_BLOBS_SCHEME)
    place = parse_oci(named + _BLOBS_FOLDER)
    if named == text or not isinstance(place, OciReference) or not named.startswith(f"{place.domain}/"):
        message = "the place for blobs must be oci://HOST[:PORT]/PREFIX, the prefix in lower case, and nothing else"
        raise RefusedError(Reason.INVALID_REFERENCE, message, param="blobs")
    return place


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
