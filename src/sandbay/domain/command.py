"""What to run: pure rules from an image's config and files and from a request to one program call.

The same function serves every provider, so that argv, environment, user and working directory mean the
same everywhere. Sources: the OCI image specification, and docker where that is silent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sandbay.domain.errors import Refusal
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ImageConfig

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORKSPACE = "/workspace"
ID_LIMIT = 65536
"""Users and groups of a sandbox are 0 … ID_LIMIT-1: what one Session's range can map."""


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """In characters."""

    rows: int = 24
    columns: int = 80


@dataclass(frozen=True)
class Command:
    """A request to run something. `argv` and `shell` exclude each other; neither means the image's command.

    `timeout` in seconds, None for no limit. `argv` replaces the image's cmd as docker does;
    `entrypoint` replaces its entrypoint and drops its cmd.
    """

    argv: tuple[str, ...] | None = None
    shell: str | None = None
    entrypoint: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    workdir: str | None = None
    timeout: float | None = None
    image_entrypoint: bool = False
    """Whether the image's entrypoint stands before `argv` (`sandbay run`) or argv is all (`exec`)."""
    terminal: TerminalSize | None = None
    """A terminal of this size in place of three streams; what is printed there is all standard output."""


@dataclass(frozen=True, slots=True)
class User:
    """Ids inside the sandbox."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    home: str = "/"
    name: str | None = None


def argv_of(config: ImageConfig, command: Command) -> tuple[str, ...] | Refusal:
    """The whole argument list, or `no_command`. An empty list clears, absence keeps."""
    if command.shell is not None:
        return ("/bin/sh", "-c", command.shell)
    if command.argv is not None and not command.image_entrypoint and command.entrypoint is None:
        argv = command.argv
    else:
        replaced = command.entrypoint is not None
        head = command.entrypoint if command.entrypoint is not None else config.entrypoint or ()
        tail = command.argv if command.argv is not None else () if replaced else config.cmd or ()
        argv = head + tail
    if not argv or not argv[0]:
        return Refusal(Reason.NO_COMMAND, "neither the request nor the image says what to run", "argv")
    return argv


def environment(
    config: ImageConfig, user: User, *overrides: Mapping[str, str], terminal: bool = False
) -> dict[str, str]:
    """The image's environment, then each override in turn; last one wins. HOME and PATH are added where missing.

    So is TERM where there is a `terminal`.
    """
    env: dict[str, str] = {}
    for entry in config.env:
        name, equals, value = entry.partition("=")
        if name and equals:
            env[name] = value
    for override in overrides:
        env.update(override)
    env.setdefault("PATH", DEFAULT_PATH)
    env.setdefault("HOME", user.home)
    if terminal:
        env.setdefault("TERM", "xterm")
    return env


def workdir_of(config: ImageConfig, command: Command) -> str:
    """The request's, else the image's, else the workspace."""
    return command.workdir or config.workdir or WORKSPACE


def find_user(spec: str, passwd: bytes, group: bytes) -> User | Refusal:
    """`user[:group]`, names or numbers, looked up in the image's own files; root needs no entry."""
    who, colon, where = spec.partition(":")
    users = list(_rows(passwd, 7))
    user = _user(who or "0", users)
    if user is None:
        return _no_user(spec)
    groups = list(_rows(group, 4))
    if colon and where:
        gid = _group(where, groups)
        return _no_user(spec) if gid is None else User(user.uid, gid, (), user.home, user.name)
    extra = dict.fromkeys(
        gid
        for row in groups
        if (gid := _number(row[2])) is not None and user.name in row[3].split(",") and gid != user.gid
    )
    return User(user.uid, user.gid, tuple(extra), user.home, user.name)


def _no_user(spec: str) -> Refusal:
    return Refusal(
        Reason.USER_NOT_FOUND,
        "the image's passwd and group files do not know this user or group",
        "user",
        {"user": spec, "highest_id": ID_LIMIT - 1},
    )


def _rows(text: bytes, fields: int) -> Iterable[list[str]]:
    for line in text.decode("utf-8", "surrogateescape").split("\n"):  # what libc takes for an end of line, no more
        row = line.split(":")
        if len(row) >= fields:
            yield row


def _user(who: str, rows: list[list[str]]) -> User | None:
    number = _number(who)
    for name, _, uid_text, gid_text, _, home, *_ in rows:
        uid, gid = _number(uid_text), _number(gid_text)
        if (number is None and name == who) or (number is not None and uid == number):
            # The first entry decides. Ids that no range maps are a refusal, never another entry or group 0.
            return None if uid is None or gid is None else User(uid, gid, (), home or "/", name)
    if number is not None:
        return User(number, 0)
    return User(0, 0, (), "/root", "root") if who == "root" else None


def _group(where: str, rows: list[list[str]]) -> int | None:
    number = _number(where)
    if number is not None:
        return number
    return next((_number(row[2]) for row in rows if row[0] == where), None)


def _number(text: str) -> int | None:
    """A decimal id in range; None for anything else, a number out of range included."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(ID_LIMIT)):
        return None
    return number if (number := int(text)) < ID_LIMIT else None
