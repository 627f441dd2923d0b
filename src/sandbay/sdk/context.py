"""Which installation, with which keys: from the environment, else from a file of `sandbay login` or `sandbay up`."""

import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbay.sdk.errors import NoContextError

URL, API_KEY, ADMIN_KEY, HOME = "SANDBAY_URL", "SANDBAY_API_KEY", "SANDBAY_ADMIN_KEY", "SANDBAY_HOME"
DEFAULT_HOME = "/var/lib/sandbay"
_FILE = "context.json"


@dataclass(frozen=True, slots=True)
class Context:
    """An installation's address and the keys at hand. `repr` shows no key."""

    url: str
    api_key: str | None = None
    admin_key: str | None = None

    def __repr__(self) -> str:
        return f"Context(url={self.url!r})"

    def project_key(self) -> str:
        """The project key; raises `NoContextError` when there is none."""
        return _need(self.api_key, "project", API_KEY)

    def administrator_key(self) -> str:
        """The administrator key; raises `NoContextError` when there is none."""
        return _need(self.admin_key, "administrator", ADMIN_KEY)


def find(environ: Mapping[str, str] | None = None) -> Context:
    """The context in force. Each variable of the environment wins over the file.

    The keys of a file are only ever sent to the address in the same file. Raises `NoContextError`.
    """
    env = os.environ if environ is None else environ
    url = env.get(URL) or None
    stored = next(_stored(env), {})
    home = stored.get("url")
    if url is not None and (home is None or url.rstrip("/") != home.rstrip("/")):
        stored = {}
    address = url or home
    if address is None:
        raise NoContextError(f"no installation is known here: neither {URL} nor a context file", code="no_context")
    return Context(
        address.rstrip("/"),
        env.get(API_KEY) or stored.get("api_key"),
        env.get(ADMIN_KEY) or stored.get("admin_key"),
    )


def _need(key: str | None, kind: str, variable: str) -> str:
    if not key:
        raise NoContextError(f"no {kind} key is known here", code="no_context", details={"variable": variable})
    if not (key.isascii() and key.isprintable()):
        raise NoContextError(f"the {kind} key holds characters that no key has", code="invalid_context")
    return key


def _stored(env: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The context files that exist and may be read, first come first; a damaged one is an error, not absence."""
    for path in _places(env):
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        yield _parsed(text, path)


def _places(env: Mapping[str, str]) -> Iterator[pathlib.Path]:
    """Where to look: the installation that was named, the one that the user logged in to, the one of this host."""
    if named := env.get(HOME):
        yield pathlib.Path(named, _FILE)
    if (own := own_file(env)) is not None:
        yield own
    if not named:
        yield pathlib.Path(DEFAULT_HOME, _FILE)


def own_file(env: Mapping[str, str]) -> pathlib.Path | None:
    """The user's context file, which `sandbay login` writes."""
    home = env.get("HOME")
    return pathlib.Path(home, ".config", "sandbay", _FILE) if home else None


def _parsed(text: bytes, path: pathlib.Path) -> dict[str, str]:
    try:
        data: Any = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or not isinstance(data.get("url"), str):
        raise NoContextError(f"{path} is no context file", code="invalid_context", details={"path": str(path)})
    return {name: value for name in ("url", "api_key", "admin_key") if isinstance(value := data.get(name), str)}
