"""The installation's blobs in a real registry: the suite, faults on the way, and what others must not take or lose."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.blobs.registry import LABEL, RegistryBlobs
from sandbay.domain.errors import RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, parse_oci
from sandbay.domain.registry import Credentials
from sandbay.engine.registry import push
from sandbay.engine.registry.client import RegistryClient
from sandbay.engine.registry.pace import Pace, Patience
from sandbay.engine.registry.trust import Trust
from tests.contracts.blobs_suite import DATA, BlobsSuite, digest_of, pieces, read
from tests.support.cutting_proxy import CuttingProxy
from tests.support.killing import at_every_step
from tests.support.real_registry import PASSWORD, PROGRAM, USER, RealRegistry, needs_registry

pytestmark = needs_registry

DIGEST = digest_of(DATA)
PATIENCE = Patience(connect=20, read=20, tries=4, first_pause=0.01)
LOGIN = Credentials(USER, PASSWORD)
ONE, OTHER = "ins_1", "ins_2"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRegistry]:
    with RealRegistry(tmp_path_factory.mktemp("blobs") / "registry") as it:
        yield it


@pytest.fixture
def repository(request: pytest.FixtureRequest) -> str:
    """One of each test's own."""
    return "house/" + digest_of(request.node.nodeid.encode()).removeprefix("sha256:")[:16]


@pytest.fixture
def proxy(registry: RealRegistry) -> Iterator[CuttingProxy]:
    with CuttingProxy(registry.host) as it:
        yield it


Opener = Callable[..., RegistryBlobs]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens stores, and closes them in the end."""
    made: list[RegistryBlobs] = []

    def open_one(
        host: str,
        repository: str,
        installation: str = ONE,
        login: Callable[[], Credentials | None] = lambda: None,
        *,
        listed: bool = True,
    ) -> RegistryBlobs:
        place = parse_oci(f"{host}/{repository}")
        assert isinstance(place, OciReference)
        trust = Trust([host] if listed else [])
        made.append(RegistryBlobs(place, installation, login, trust, tmp_path / "scratch", Pace(PATIENCE)))
        return made[-1]

    yield open_one
    for each in made:
        with each:
            assert list((tmp_path / "scratch").iterdir()) == []


def refused(blobs: RegistryBlobs, data: bytes = DATA) -> Reason:
    with pytest.raises(RefusedError) as caught:
        blobs.put(digest_of(data), len(data), pieces(data))
    return caught.value.refusal.reason


def keeper(registry: RealRegistry, repository: str, tag: str) -> Any:
    return registry.get(f"{repository}/manifests/{tag}").raise_for_status().json()


class TestRegistryBlobs(BlobsSuite):
    @pytest.fixture
    def blobs(self, registry: RealRegistry, repository: str, opened: Opener) -> RegistryBlobs:
        return opened(registry.host, repository)


class TestRegistryBlobsInPieces(BlobsSuite):
    """The same where each blob of some size takes many pieces."""

    @pytest.fixture
    def blobs(
        self, registry: RealRegistry, repository: str, monkeypatch: pytest.MonkeyPatch, opened: Opener
    ) -> RegistryBlobs:
        monkeypatch.setattr(push.push_blob, "__defaults__", (100_000,))
        return opened(registry.host, repository)


@pytest.mark.parametrize("cuts", [[50_000], [300_000], [1_000_000], [1_200_000], [300_000, 300_000, 100_000]])
@pytest.mark.parametrize("piece", [400_000, push.PIECE])
def test_a_cut_upload_goes_on(
    proxy: CuttingProxy, repository: str, cuts: list[int], piece: int, monkeypatch: pytest.MonkeyPatch, opened: Opener
) -> None:
    monkeypatch.setattr(push.push_blob, "__defaults__", (piece,))
    blobs = opened(proxy.host, repository)
    proxy.cuts = list(cuts)
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    assert proxy.cuts == []
    assert read(blobs, DIGEST) == DATA
    assert proxy.sent < (len(cuts) + 1) * len(DATA) + 100_000


def test_a_registry_that_is_away_is_no_verdict(
    proxy: CuttingProxy, registry: RealRegistry, repository: str, opened: Opener
) -> None:
    blobs = opened(proxy.host, repository)
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    proxy.away = True
    proxy.drop()
    for ask in (blobs.has, blobs.open, blobs.size):
        with pytest.raises(RefusedError) as caught:
            ask(DIGEST)
        assert caught.value.refusal.reason is Reason.REGISTRY_UNREACHABLE
    assert refused(blobs, b"new") is Reason.REGISTRY_UNREACHABLE
    proxy.away = False
    assert read(blobs, DIGEST) == DATA
    assert not blobs.has(digest_of(b"new"))


def test_one_that_goes_away_in_the_middle_shows_nothing(proxy: CuttingProxy, repository: str, opened: Opener) -> None:
    blobs = opened(proxy.host, repository)

    def leaving() -> Iterator[bytes]:
        yield from pieces(DATA)
        proxy.away = True
        proxy.drop()

    with pytest.raises(RefusedError) as caught:
        blobs.put(DIGEST, len(DATA), leaving())
    assert caught.value.refusal.reason is Reason.REGISTRY_UNREACHABLE
    proxy.away = False
    assert not blobs.has(DIGEST)
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    assert read(blobs, DIGEST) == DATA


def test_killed_before_any_request_of_a_push(
    registry: RealRegistry, repository: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opener
) -> None:
    """What was not pushed whole is not there; whoever pushes again needs nothing of what was left behind."""
    monkeypatch.setattr(push.push_blob, "__defaults__", (400_000,))
    (tmp_path / "scratch").mkdir()
    number = 0

    def begin() -> RegistryBlobs:
        return opened(registry.host, f"{repository}/{number}")

    def put() -> None:
        begin().put(DIGEST, len(DATA), pieces(DATA))

    steps = []
    for killed in at_every_step(put, tmp_path / "scratch", [(RegistryClient, "_send")]):
        blobs = begin()
        assert blobs.has(DIGEST) == (killed is None), "the keeper, which comes last, makes it ours"
        put()
        assert blobs.has(DIGEST)
        assert read(blobs, DIGEST) == DATA
        steps.append(killed)
        number += 1
    # Looked for, begun, three pieces, the last of which closes it; what a keeper is about, which is looked for, too.
    assert steps.count("_send") >= 9


def test_a_cut_reading_goes_on(proxy: CuttingProxy, repository: str, opened: Opener) -> None:
    blobs = opened(proxy.host, repository)
    data = DATA * 20
    blobs.put(digest_of(data), len(data), pieces(data, 1 << 20))
    with blobs.open(digest_of(data)) as file:
        begin = file.read(100_000)
        proxy.drop()
        assert begin + file.read() == data


def test_it_is_kept_for_whoever_put_it(registry: RealRegistry, repository: str, opened: Opener) -> None:
    """Two installations in one repository: what one has pushed the other one does not believe to be its own."""
    one, other = opened(registry.host, repository), opened(registry.host, repository, OTHER)
    one.put(DIGEST, len(DATA), pieces(DATA))
    assert (one.has(DIGEST), other.has(DIGEST)) == (True, False)
    other.put(DIGEST, len(DATA), pieces(DATA))
    mine, theirs = (keeper(registry, repository, f"{who}.{DIGEST[7:]}") for who in (ONE, OTHER))
    assert (mine["annotations"], theirs["annotations"]) == ({LABEL: ONE}, {LABEL: OTHER})
    assert [layer["digest"] for layer in mine["layers"]] == [DIGEST]


def test_a_blob_that_is_there_is_not_sent_again(proxy: CuttingProxy, repository: str, opened: Opener) -> None:
    blobs = opened(proxy.host, repository)
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    before = proxy.sent
    blobs.put(DIGEST, len(DATA), pieces(DATA))
    assert proxy.sent - before < 10_000
    with pytest.raises(RefusedError) as caught:
        blobs.put(DIGEST, len(DATA), pieces(b"x" + DATA[1:]))
    assert caught.value.refusal.reason is Reason.DIGEST_MISMATCH


def test_the_registrys_garbage_collection_takes_nothing_of_ours(tmp_path: Path, opened: Opener) -> None:
    registry = RealRegistry(tmp_path / "registry")
    with registry:
        blobs = opened(registry.host, "house/blobs")
        blobs.put(DIGEST, len(DATA), pieces(DATA))
        loose = registry.push_loose("house/blobs", b"nobody's")
    collect = [PROGRAM, "garbage-collect", "-m", str(registry.config)]
    subprocess.run(collect, check=True, capture_output=True)
    with registry:
        assert read(blobs, DIGEST) == DATA
        assert blobs.has(DIGEST)
        assert registry.get(f"house/blobs/blobs/{loose}").status_code == 404


def test_credentials_count_at_each_use_and_are_not_told(tmp_path: Path, opened: Opener) -> None:
    login: list[Credentials | None] = [None]
    with RealRegistry(tmp_path / "registry", auth=True) as registry:
        blobs = opened(registry.host, "house", login=lambda: login[0])
        for wrong in (None, Credentials(USER, "wrong")):
            login[0] = wrong
            assert refused(blobs) is Reason.UNAUTHORIZED_OR_MISSING
            with pytest.raises(RefusedError) as caught:
                blobs.size(DIGEST)
            assert "wrong" not in str(caught.value.refusal.details)
        login[0] = LOGIN
        blobs.put(DIGEST, len(DATA), pieces(DATA))
        assert read(blobs, DIGEST) == DATA


def test_plain_http_only_where_it_is_listed(registry: RealRegistry, opened: Opener) -> None:
    assert refused(opened(registry.host, "house", listed=False)) is Reason.REGISTRY_UNREACHABLE
