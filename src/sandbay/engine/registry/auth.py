"""Who we are to one registry. Its credentials go to it and to the token realm that it names, to nobody else."""

import base64
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import httpx

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.registry import Credentials
from sandbay.engine.documents import read_document
from sandbay.engine.registry.refusals import unauthorized
from sandbay.engine.registry.trust import Trust

_PART = re.compile(r'\s*,*\s*([A-Za-z0-9._~+/-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?')
_LONGEST_CHALLENGE = 8192
_LONGEST_TOKEN = 64 * 1024

Fetch = Callable[[httpx.URL, Mapping[str, str]], bytes]
"""A small answer's bytes, from exactly this address. Raises as the client does; 401 and 403 are `unauthorized`."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way in which a registry wants to be told who asks. `scheme` is in lower case."""

    scheme: str
    params: Mapping[str, str]


def challenges(headers: Iterable[str]) -> Iterator[Challenge]:
    """The challenges of `WWW-Authenticate`, each header with one or more. What is not understood ends a header."""
    for header in headers:
        scheme, params = "", dict[str, str]()
        at = 0
        while match := _PART.match(header[:_LONGEST_CHALLENGE], at):
            at = match.end()
            name, quoted, bare = match.groups()
            if quoted is None and bare is None:
                if scheme:
                    yield Challenge(scheme, params)
                scheme, params = name.lower(), {}
            else:
                params[name.lower()] = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        if scheme:
            yield Challenge(scheme, params)


class Auth:
    """The `Authorization` for one repository of one registry; threads share it."""

    def __init__(
        self, registry: str, repository: str, credentials: Credentials | None, trust: Trust, actions: str = "pull"
    ) -> None:
        """Nothing is sent before the registry has asked for it. `actions` are what tokens are asked for."""
        self._registry, self._trust = registry, trust
        self._scope = f"repository:{repository}:{actions}"
        self._credentials = credentials
        self._lock = threading.Lock()
        self._answer: Challenge | None = None
        self.header: str | None = None

    def renew(self, headers: Iterable[str], used: str | None, fetch: Fetch) -> bool:
        """Find what to send after `used` was refused; True when it is fresh, so that another refusal is final.

        Without a challenge the last one is answered again: a token may have expired. Refuses with
        `unauthorized_or_missing` when there is nothing to answer with.
        """
        with self._lock:
            if self.header != used:
                return False
            known = {challenge.scheme: challenge for challenge in challenges(headers)}
            self._answer = known.get("bearer") or known.get("basic") or self._answer
            header = self._header(self._answer, fetch)
            if header is None or (header == used and header.startswith("Basic ")):
                raise unauthorized(self._registry)
            self.header = header
            return True

    def _header(self, challenge: Challenge | None, fetch: Fetch) -> str | None:
        if challenge is None:
            return None
        if challenge.scheme == "basic":
            return self._basic()
        return f"Bearer {self._token(challenge.params, fetch)}"

    def _basic(self) -> str | None:
        if self._credentials is None:
            return None
        pair = f"{self._credentials.username}:{self._credentials.password}".encode()
        return "Basic " + base64.b64encode(pair).decode()

    def _token(self, params: Mapping[str, str], fetch: Fetch) -> str:
        realm = self._trust.address(self._registry, params.get("realm", ""))
        asked = {"service": params.get("service"), "scope": params.get("scope", self._scope)}
        url = realm.copy_merge_params({name: value for name, value in asked.items() if value})
        basic = self._basic()
        data = fetch(url, {} if basic is None else {"Authorization": basic})
        try:
            document = read_document(data, Reason.MALFORMED_MANIFEST, "token")
            token = document.text("token", "") or document.text("access_token", "")
        except RefusedError:
            token = ""
        if not 0 < len(token) <= _LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise unauthorized(self._registry)
        return token
