"""Manifests and blobs of one repository, over the distribution protocol.

No header is believed about content: whoever asks verifies the bytes. Redirects of reads are followed a few times,
always without `Authorization`. What may pass is tried again; a cut blob is resumed where it was cut.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

import httpx

from sandbay.domain.reasons import Reason
from sandbay.engine.digest import wrong_size
from sandbay.engine.manifest import Descriptor, check_limit
from sandbay.engine.media import DOCUMENTS
from sandbay.engine.registry.auth import Auth
from sandbay.engine.registry.bound import bounded, within
from sandbay.engine.registry.pace import Pace, retry_after
from sandbay.engine.registry.refusals import (
    PassingError,
    of_answer,
    refused_for_good,
    stalled,
    unauthorized,
    unreachable,
)
from sandbay.engine.registry.trust import Trust

ACCEPT = ", ".join(DOCUMENTS)
_AGENT = "sandbay"
_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_READING = frozenset({"GET", "HEAD"})
_ERROR_BYTES = 64 * 1024
_TOKEN_BYTES = 256 * 1024
_AUTH_ROUNDS = 3

T = TypeVar("T")

_READ = frozenset({HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE})


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. `at` is below the repository, or a whole address that the registry has named.

    `missing` is what a plain 404 means, `good` the statuses that are no fault.
    """

    at: str | httpx.URL
    missing: Reason
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    content: bytes | None = None
    good: frozenset[HTTPStatus] = _READ

    @property
    def of_manifest(self) -> bool:
        """Whether it is about a manifest."""
        return isinstance(self.at, str) and self.at.startswith("manifests/")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document as it came: unverified. `media_type` and `digest` are what the answer said of it, or empty."""

    data: bytes
    media_type: str
    digest: str


class RegistryClient:
    """One repository of one registry. Threads may share it."""

    def __init__(
        self, http: httpx.Client, registry: str, repository: str, auth: Auth, trust: Trust, pace: Pace
    ) -> None:
        """`registry` is its canonical name; `http` follows no redirect by itself."""
        self._http, self._registry, self._auth, self._trust, self._pace = http, registry, auth, trust, pace
        self._base = httpx.URL(trust.base(registry))
        self._root = f"{trust.base(registry)}/v2/{repository}"

    def manifest(self, reference: str, limit: int) -> Fetched:
        """A manifest or index by tag or digest. Refuses with `limit_exceeded` past `limit` bytes."""
        return self.patiently(lambda: self._manifest(reference, limit))

    def size(self, path: str) -> int | None:
        """Bytes of `blobs/DIGEST` or `manifests/REFERENCE`, as the registry says; None where it has none."""
        missing = Reason.MANIFEST_MISSING if path.startswith("manifests/") else Reason.BLOB_MISSING
        ask = Ask(path, missing, method="HEAD", good=frozenset({HTTPStatus.OK, HTTPStatus.NOT_FOUND}))
        return self.patiently(lambda: self._size(ask))

    def page(self, at: str | httpx.URL, most: int) -> tuple[bytes, httpx.URL | None]:
        """A page of a list, asked for once, and where the next is: an address of this registry, as it spells it."""
        with self.open(Ask(at, Reason.REPOSITORY_MISSING)) as response:
            data = self._small(response, most)
            if data is None:
                raise refused_for_good(self._registry, "a page of its list is too long")
            said = response.links.get("next", {}).get("url")
            following = self._trust.address(self._registry, said, response.request.url) if said else None
        if following is not None and not self._is_ours(following):
            raise refused_for_good(self._registry, "its list goes on elsewhere")
        return data, following

    def chunks(self, path: str, blob: Descriptor, on_resume: Callable[[], None]) -> Generator[bytes]:
        """Bytes of `blobs/DIGEST` or `manifests/DIGEST`, as they come; `on_resume` hears when they are pieced together.

        They end by themselves where the registry says that they end, early or not: the caller counts.
        """
        at = since = tries = 0
        while True:
            try:
                with closing(self._from(path, blob, at)) as pieces:
                    for piece in pieces:
                        at += len(piece)
                        yield piece
            except PassingError as fault:
                if at - since >= self._pace.patience.progress_bytes:
                    since, tries = at, 0
                tries += 1
                self.pause(fault, tries)
                if at:
                    on_resume()
            else:
                return

    def patiently(self, act: Callable[[], T]) -> T:
        """Do it, and again after faults that may pass, a few times."""
        tries = 0
        while True:
            try:
                return act()
            except PassingError as fault:
                tries += 1
                self.pause(fault, tries)

    def pause(self, fault: PassingError, tries: int) -> None:
        """Wait before the next try, or raise the fault when there have been enough."""
        self._pace.pause(self._registry, fault, tries)

    @contextmanager
    def open(self, ask: Ask) -> Iterator[httpx.Response]:
        """A good answer, its body unread. Raises what it means otherwise."""
        named = isinstance(ask.at, httpx.URL)
        url = self._trust.address(self._registry, str(ask.at) if named else f"{self._root}/{ask.at}")
        # An upload may be led elsewhere; who we are is told to the registry alone.
        ours = self._is_ours(url)
        fresh = False
        for _ in range(_AUTH_ROUNDS):
            used = self._auth.header if ours else None
            response, hops = self._follow(url, ask, used)
            with closing(response):
                if hops or fresh or not ours or not _refuses(response.status_code, used):
                    self._check(response, ask, redirected=hops > 0 or not ours)
                    yield response
                    bare = ask.method == "HEAD" or response.headers.get("content-length") == "0"
                    if bare and not response.is_stream_consumed:
                        response.read()  # nothing: so that the connection may serve again
                    return
                challenge = response.headers.get_list("www-authenticate")
            fresh = self._auth.renew(challenge, used, self._token)
        raise unauthorized(self._registry)

    def named(self, response: httpx.Response) -> httpx.URL:
        """Where an answer's `Location` leads. Refuses with `registry_unreachable` what may not be asked."""
        return self._trust.address(self._registry, response.headers.get("location", ""), response.request.url)

    def _is_ours(self, url: httpx.URL) -> bool:
        """Whether it is the registry itself that is asked."""
        return (url.scheme, url.netloc) == (self._base.scheme, self._base.netloc)

    def _size(self, ask: Ask) -> int | None:
        with self.open(ask) as response:
            if response.status_code == HTTPStatus.NOT_FOUND:
                return None
            said = response.headers.get("content-length", "")
            if not said.isascii() or not said.isdigit():
                raise refused_for_good(self._registry, "it does not say how long a blob is")
            return int(said)

    def _manifest(self, reference: str, limit: int) -> Fetched:
        with self.open(Ask(f"manifests/{reference}", Reason.MANIFEST_MISSING)) as response:
            data = b""
            for piece in self._pieces(response):
                data += piece
                check_limit("manifest_bytes", len(data), limit)
            said = response.headers
            media_type = said.get("content-type", "").partition(";")[0].strip().lower()
            return Fetched(data, media_type, said.get("docker-content-digest", ""))

    def _from(self, path: str, blob: Descriptor, at: int) -> Generator[bytes]:
        """The bytes from an offset on, once."""
        headers = {"Range": f"bytes={at}-"} if at else {}
        missing = Reason.MANIFEST_MISSING if path.startswith("manifests/") else Reason.BLOB_MISSING
        with self.open(Ask(path, missing, headers)) as response:
            if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise wrong_size(blob.digest, blob.size, at)
            skip = 0
            if at and response.status_code == HTTPStatus.PARTIAL_CONTENT:
                if not response.headers.get("content-range", "").startswith(f"bytes {at}-"):
                    raise unreachable(self._registry, "it resumes elsewhere than it was asked to")
            elif at:
                skip = at  # it sends the whole again
            for piece in self._pieces(response):
                rest = piece[skip:]
                skip = max(0, skip - len(piece))
                at += len(rest)
                if rest:
                    yield rest
            if at < blob.size and "content-length" not in response.headers:
                raise unreachable(self._registry, "the connection ended early")

    def _pieces(self, response: httpx.Response) -> Iterator[bytes]:
        """The body as it comes over the wire. A sender that is all but silent has stalled."""
        patience, clock = self._pace.patience, self._pace.clock
        since, got = clock(), 0
        with self._faults():
            body = response.iter_raw()
            while (piece := self._next(body)) is not None:
                got += len(piece)
                if clock() - since >= patience.window:
                    if got < patience.window_bytes:
                        raise stalled(self._registry)
                    since, got = clock(), 0
                yield piece

    def _next(self, body: Iterator[bytes]) -> bytes | None:
        with within(self._pace.patience.window):
            return next(body, None)

    def _follow(self, url: httpx.URL, ask: Ask, authorization: str | None) -> tuple[httpx.Response, int]:
        """The answer at the end of the redirects, and how many there were. Only the first request is authorized.

        What writes is not sent anywhere else than where it was meant to go.
        """
        known = {} if authorization is None else {"Authorization": authorization}
        headers = {"Accept": ACCEPT if ask.of_manifest else "*/*", **ask.headers}
        for hops in range(_HOPS + 1):
            response = self._send(url, {**headers, **({} if hops else known)}, ask.method, ask.content)
            if response.status_code not in _REDIRECTS or ask.method not in _READING:
                return response, hops
            response.close()
            url = self._trust.address(self._registry, response.headers.get("location", ""), url)
        raise refused_for_good(self._registry, "it redirects too often", redirects=_HOPS)

    def _send(
        self, url: httpx.URL, headers: Mapping[str, str], method: str = "GET", content: bytes | None = None
    ) -> httpx.Response:
        self._pace.wait_for(self._registry)
        whole = {"User-Agent": _AGENT, "Accept-Encoding": "identity", **headers}
        with self._faults():
            request = self._http.build_request(
                method, url, headers=whole, content=content, extensions={"trace": bounded}
            )
            with within(self._pace.patience.head):
                return self._http.send(request, stream=True)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Faults of the connection by our names."""
        try:
            yield
        except httpx.ConnectTimeout:
            raise unreachable(self._registry, "it does not answer in time") from None
        except httpx.TimeoutException:
            raise stalled(self._registry) from None
        except httpx.HTTPError as error:
            raise unreachable(self._registry, f"the connection failed ({type(error).__name__})") from None

    def _check(self, response: httpx.Response, ask: Ask, *, redirected: bool) -> None:
        status = response.status_code
        if status in ask.good:
            return
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise PassingError(
                Reason.RATE_LIMITED,
                f"{self._registry} wants fewer requests",
                details={"registry": self._registry},
                wait=retry_after(response.headers),
            )
        if redirected:
            raise unreachable(self._registry, f"where it leads to answers {status}", status=status)
        error = of_answer(self._registry, status, self._small(response, _ERROR_BYTES) or b"", ask.missing)
        if isinstance(error, PassingError):
            error.wait = retry_after(response.headers)
        raise error

    def _small(self, response: httpx.Response, most: int) -> bytes | None:
        """A whole small body, or None when it is larger."""
        data = b""
        for piece in self._pieces(response):
            data += piece
            if len(data) > most:
                return None
        return data

    def _token(self, url: httpx.URL, headers: Mapping[str, str]) -> bytes:
        """What the token realm answers; it is not followed anywhere else."""
        return self.patiently(lambda: self._token_once(url, headers))

    def _token_once(self, url: httpx.URL, headers: Mapping[str, str]) -> bytes:
        with closing(self._send(url, headers)) as response:
            if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise unauthorized(self._registry, response.status_code)
            if response.status_code in _REDIRECTS:
                raise refused_for_good(self._registry, "its token realm redirects")
            self._check(response, Ask(url, Reason.MANIFEST_MISSING), redirected=False)
            data = self._small(response, _TOKEN_BYTES)
        if data is None:
            raise refused_for_good(self._registry, "its token realm answers too much")
        return data


def _refuses(status: int, used: str | None) -> bool:
    """Whether it is the authorization that is refused. Some registries call a token that has expired a bad request."""
    expired = status == HTTPStatus.BAD_REQUEST and (used or "").startswith("Bearer ")
    return status == HTTPStatus.UNAUTHORIZED or expired
