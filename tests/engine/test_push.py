"""Uploads against a registry in this process that keeps what arrived of a cut piece, and forgets what it is told to."""

import hashlib
import io
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.registry import Credentials
from sandbay.engine.registry.auth import Auth
from sandbay.engine.registry.client import RegistryClient
from sandbay.engine.registry.pace import Pace, Patience
from sandbay.engine.registry.push import push_blob
from sandbay.engine.registry.trust import Trust

DATA = bytes(range(256)) * 40
DIGEST = "sha256:" + hashlib.sha256(DATA).hexdigest()
PIECE = 1000


def answered(status: int, **headers: str) -> httpx.Response:
    """An answer whose empty body is read as one from the network would be."""
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(b""))


@dataclass
class Registry:
    """`cuts`: how many bytes of the n-th piece arrive before the connection ends; None is all, and the answer too."""

    cuts: list[int | None] = field(default_factory=list)
    forgets: bool = False
    answer_lost: bool = False
    elsewhere: str = ""
    uploads: dict[str, bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    received: int = 0
    seen: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        act = getattr(self, request.method.lower())
        answer = act(request.url.path.rpartition("/")[2], request)
        assert isinstance(answer, httpx.Response)
        return answer

    def head(self, digest: str, _: httpx.Request) -> httpx.Response:
        if digest not in self.blobs:
            return answered(404)
        return httpx.Response(200, headers={"content-length": str(len(self.blobs[digest]))})

    def post(self, _: str, request: httpx.Request) -> httpx.Response:
        name = f"u{len(self.seen)}"
        self.uploads[name] = b""
        return httpx.Response(202, headers={"location": f"{self.elsewhere}/v2/fx/blobs/uploads/{name}?state=1"})

    def get(self, name: str, _: httpx.Request) -> httpx.Response:
        if self.forgets or name not in self.uploads:
            self.uploads.pop(name, None)
            return answered(404)
        return httpx.Response(204, headers={"range": f"0-{max(0, len(self.uploads[name]) - 1)}"})

    def patch(self, name: str, request: httpx.Request) -> httpx.Response:
        self._take(name, request)
        return httpx.Response(202, headers={"location": str(request.url)})

    def put(self, name: str, request: httpx.Request) -> httpx.Response:
        self._take(name, request)
        digest = request.url.params["digest"]
        assert "sha256:" + hashlib.sha256(self.uploads[name]).hexdigest() == digest
        self.blobs[digest] = self.uploads.pop(name)
        if self.answer_lost:
            self.answer_lost = False
            raise httpx.ReadError("cut")
        return httpx.Response(201)

    def delete(self, name: str, _: httpx.Request) -> httpx.Response:
        return answered(404 if self.uploads.pop(name, None) is None else 204)

    def _take(self, name: str, request: httpx.Request) -> None:
        content = request.read()
        assert not content or request.headers["content-range"].startswith(f"{len(self.uploads[name])}-")
        cut = self.cuts.pop(0) if self.cuts else None
        self.uploads[name] += content if cut is None else content[:cut]
        self.received += len(content) if cut is None else cut
        if cut is not None:
            raise httpx.WriteError("cut")


def push(registry: Registry, plain: tuple[str, ...] = ("reg.example",)) -> None:
    trust = Trust(plain)
    auth = Auth("reg.example", "fx", Credentials("user", "hush"), trust, "pull,push")
    pace = Pace(Patience(tries=3), sleep=lambda _: None)
    with httpx.Client(transport=httpx.MockTransport(registry)) as http:
        client = RegistryClient(http, "reg.example", "fx", auth, trust, pace)
        push_blob(client, DIGEST, len(DATA), io.BytesIO(DATA), PIECE)


@pytest.mark.parametrize(
    "cuts", [[], [0], [500], [1000], [None, 7, 7], [None] * 5 + [300], [None] * 10 + [0], [None] * 10 + [240]]
)
def test_what_has_arrived_is_not_sent_again(cuts: list[int | None]) -> None:
    registry = Registry(list(cuts))
    push(registry)
    assert registry.blobs == {DIGEST: DATA}
    assert registry.received == len(DATA)
    assert registry.uploads == {}


@pytest.mark.parametrize("cuts", [[500], [None, None, 500], [None] * 10 + [240]])
def test_where_an_upload_is_forgotten_another_begins(cuts: list[int | None]) -> None:
    registry = Registry(list(cuts), forgets=True)
    push(registry)
    assert registry.blobs == {DIGEST: DATA}


def test_an_answer_that_got_lost_is_found_out() -> None:
    registry = Registry(answer_lost=True)
    push(registry)
    assert registry.received == len(DATA)


def test_it_does_not_go_on_for_ever() -> None:
    registry = Registry([None, 5] * 100, forgets=True)
    with pytest.raises(RefusedError) as caught:
        push(registry)
    assert caught.value.refusal.reason is Reason.REGISTRY_UNREACHABLE
    assert (registry.blobs, registry.uploads) == ({}, {})
    assert len(registry.seen) < 40


def test_an_upload_that_leads_elsewhere_is_not_told_who_we_are() -> None:
    wants: list[Any] = []

    class Other(Registry):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.url.host == "reg.example":
                if "authorization" not in request.headers:
                    return answered(401, **{"www-authenticate": 'Basic realm="x"'})
            else:
                wants.append(request.headers.get("authorization"))
            return super().__call__(request)

    registry = Other(elsewhere="https://store.example")
    push(registry)
    assert registry.blobs == {DIGEST: DATA}
    assert set(wants) == {None}
    # In the clear it is not followed where that is not listed.
    with pytest.raises(RefusedError) as caught:
        push(Other(elsewhere="http://store.example"))
    assert caught.value.refusal.details["host"] == "store.example"


def test_a_write_is_not_redirected() -> None:
    moved = answered(307, location="https://store.example/x")
    seen: list[str] = []

    def redirecting(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return answered(404) if request.method == "HEAD" else moved

    registry: Any = redirecting
    with pytest.raises(RefusedError) as caught:
        push(registry)
    assert caught.value.refusal.reason is Reason.REGISTRY_UNREACHABLE
    assert set(seen) == {"reg.example"}
