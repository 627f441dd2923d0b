"""Registries as sources: a real one, and one that misbehaves in every way that has been seen in the wild."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.registry import RegistrySources
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, parse_oci
from sandbay.domain.registry import Credentials
from sandbay.domain.release import Variant
from sandbay.engine.registry.pace import Pace, Patience
from sandbay.engine.registry.trust import Trust
from sandbay.ports.image_source import Copied, Wanted
from tests.contracts.blobs_suite import read
from tests.contracts.image_source_suite import AMD64, ARM64, FIXTURES, REFUSED, TAKEN, told_rightly
from tests.support import real_registry
from tests.support.faulty_registry import BASIC, PASSWORD, USER, Faults, FaultyRegistry
from tests.support.oci_layout import Layout
from tests.support.real_registry import RealRegistry, needs_registry
from tests.support.tar_entries import file

PATIENCE = Patience(connect=20, read=20, tries=4)
IMPATIENCE = Patience(connect=20, read=0.5, head=0.5, tries=4, window=0.2, window_bytes=1_000_000)
LOGIN = Credentials(USER, PASSWORD)
GOOD = "e01-attestation-first"
# Here it is the tag that says which image, and a layout's own faults do not travel.
BY_TAG = {"e27-two-images", "e28-tag-moved"}


class Puller:
    """Pulls with a clock that jumps over every pause, and notes the pauses."""

    def __init__(self, blobs: FolderBlobs, plain: Sequence[str], patience: Patience = PATIENCE) -> None:
        self.pauses: list[float] = []
        self.blobs = blobs
        self.sources = RegistrySources(Trust(plain), Pace(patience, sleep=self._sleep, clock=self._clock))
        self._jumped = 0.0

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._jumped += seconds

    def _clock(self) -> float:
        return time.monotonic() + self._jumped

    def pull(
        self, text: str, credentials: Credentials | None = None, platforms: Sequence[Platform] = (AMD64,)
    ) -> tuple[Variant, ...]:
        reference = parse_oci(text)
        assert isinstance(reference, OciReference)
        seen: list[Copied] = []
        source = self.sources.source(reference, credentials)
        variants = source.read(Wanted(platforms), self.blobs, seen.append)
        told_rightly(seen, variants)
        for variant in variants:
            for digest in [a.value for a in variant.artifacts.values()] + [layer.digest for layer in variant.layers]:
                assert read(self.blobs, digest)
        return variants

    def refused(self, text: str, credentials: Credentials | None = None) -> Refusal:
        with pytest.raises(RefusedError) as caught:
            self.pull(text, credentials)
        refusal = caught.value.refusal
        for words in (USER, PASSWORD, "Bearer", "Basic", "words of the registry"):
            assert words not in f"{refusal}"
        return refusal


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "store")


Serve = Callable[..., tuple[FaultyRegistry, Puller]]


@pytest.fixture
def serve(blobs: FolderBlobs) -> Iterator[Serve]:
    """Start a faulty registry, and a puller that may speak to it in the clear."""
    started: list[FaultyRegistry] = []

    def start(
        faults: Faults | None = None, root: Path = FIXTURES, patience: Patience = PATIENCE
    ) -> tuple[FaultyRegistry, Puller]:
        registry = FaultyRegistry(root, faults)
        registry.__enter__()
        started.append(registry)
        return registry, Puller(blobs, [registry.host, registry.storage], patience)

    yield start
    for registry in started:
        registry.__exit__(None, None, None)


@pytest.mark.parametrize("name, reason", [(n, r) for n, r in REFUSED.items() if n not in BY_TAG])
def test_each_awkward_image_has_its_reason(name: str, reason: Reason, serve: Serve) -> None:
    registry, puller = serve()
    assert puller.refused(f"{registry.host}/{name}").reason is reason
    assert puller.pauses == [], "what is wrong with the content is not tried again"


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_fit_to_read_is_taken(name: str, serve: Serve) -> None:
    registry, puller = serve()
    (variant,) = puller.pull(f"{registry.host}/{name}")
    assert variant.platform == AMD64
    paths = [request["path"] for request in registry.seen]
    assert len(paths) == len(set(paths)), "everything is asked for once"


def test_an_attestation_is_neither_offered_nor_asked_for(serve: Serve) -> None:
    registry, puller = serve()
    (variant,) = puller.pull(f"{registry.host}/{GOOD}")
    assert variant.index_digest == "sha256:b9ec3519665002cf4e08f19b1217dc6386b03c5cec327423eda04cc095774a0b"
    assert registry.asked("6c3bb41b20feed2f936dbb00619537716e7ddc00899892790109b765f7905d7e") == []


def test_no_address_that_an_image_names_is_asked(serve: Serve) -> None:
    registry, puller = serve()
    puller.refused(f"{registry.host}/e17-foreign-layer")
    assert all(not request["storage"] for request in registry.seen)
    assert registry.asked("/blobs/") == [] or len(registry.asked("/blobs/")) == 1, "its config at most"


def test_every_type_is_accepted_and_nothing_is_packed(serve: Serve) -> None:
    registry, puller = serve()
    puller.pull(f"{registry.host}/{GOOD}")
    accepted = {request["accept"] for request in registry.asked("/manifests/")}
    assert [set(each.split(", ")) for each in accepted] == [
        {
            "application/vnd.oci.image.index.v1+json",
            "application/vnd.oci.image.manifest.v1+json",
            "application/vnd.docker.distribution.manifest.list.v2+json",
            "application/vnd.docker.distribution.manifest.v2+json",
        }
    ]


def test_a_digest_goes_before_a_tag_and_is_held(serve: Serve, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "fx")
    image = layout.image([[file("x", b"1")]], platform="linux/amd64", ref="1")
    registry, puller = serve(root=tmp_path)
    for text in (f"fx@{image.manifest_digest}", f"fx:1@{image.manifest_digest}", f"fx:2@{image.manifest_digest}"):
        (variant,) = puller.pull(f"{registry.host}/{text}")
        assert variant.digest == image.manifest_digest
    assert {request["path"].rpartition("/")[2] for request in registry.asked("/manifests/")} == {image.manifest_digest}
    layout.blob_path(image.manifest_digest).write_bytes(layout.blob_path(image.manifest_digest).read_bytes() + b" ")
    assert puller.refused(f"{registry.host}/fx@{image.manifest_digest}").reason is Reason.DIGEST_MISMATCH
    assert puller.refused(f"{registry.host}/fx:2").reason is Reason.MANIFEST_MISSING


def test_a_header_can_raise_doubts_about_content_and_settle_none(serve: Serve) -> None:
    registry, puller = serve({"ctype": True})
    for name in (GOOD, "e15-uncompressed", "e11-no-media-type"):
        puller.pull(f"{registry.host}/{name}")
    registry, puller = serve({"header-digest": True})
    assert puller.refused(f"{registry.host}/{GOOD}").reason is Reason.DIGEST_MISMATCH
    registry, puller = serve({"ctype-index": True})
    assert puller.refused(f"{registry.host}/e15-uncompressed").reason is Reason.MALFORMED_MANIFEST


def test_an_index_gives_the_wanted_platforms_and_no_other(serve: Serve, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "fx")
    images = {
        text: layout.image([[file("arch", text)]], platform=text, listed=False)
        for text in ("linux/amd64", "linux/arm64/v8", "linux/s390x")
    }
    index = layout.index(list(images.values()), ref="1")
    registry, puller = serve(root=tmp_path)
    variants = puller.pull(f"{registry.host}/fx:1", platforms=(ARM64, AMD64))
    assert [(v.platform, v.digest, v.index_digest) for v in variants] == [
        (ARM64, images["linux/arm64/v8"].manifest_digest, index),
        (AMD64, images["linux/amd64"].manifest_digest, index),
    ]
    assert registry.asked(images["linux/s390x"].manifest_digest) == []


# Transfer faults


@pytest.mark.parametrize("more", ["", "no-range", "redirect", "busy", "token"])
def test_a_cut_download_is_resumed(more: str, serve: Serve) -> None:
    registry, puller = serve({"cut": 0.6, more: 2})
    puller.pull(f"{registry.host}/{GOOD}")
    assert any(request["range"] for request in registry.asked("sha256:"))


def test_a_resumed_download_with_other_bytes_is_made_anew(serve: Serve) -> None:
    registry, puller = serve({"cut": 0.6, "wrong-tail": True})
    puller.pull(f"{registry.host}/{GOOD}")
    whole = [request for request in registry.asked("/blobs/") if not request["range"]]
    assert len(whole) == 2 * len({request["path"] for request in whole})


@pytest.mark.parametrize(
    "faults, reason",
    [
        ({"flip": True}, Reason.DIGEST_MISMATCH),
        ({"short": True}, Reason.SIZE_MISMATCH),
        ({"flip": True, "cut": 0.5}, Reason.DIGEST_MISMATCH),
        ({"short": True, "cut": 0.5}, Reason.SIZE_MISMATCH),
        ({"huge": True}, Reason.LIMIT_EXCEEDED),
    ],
)
def test_wrong_content_is_not_tried_for_ever(faults: Faults, reason: Reason, serve: Serve, blobs: FolderBlobs) -> None:
    registry, puller = serve(faults)
    assert puller.refused(f"{registry.host}/{GOOD}").reason is reason
    assert len(registry.seen) < 25
    assert list((blobs._blobs).iterdir()) == list((blobs._incoming).iterdir()) == []


def test_an_end_without_a_length_may_be_a_cut(serve: Serve) -> None:
    registry, puller = serve({"no-length": True})
    puller.pull(f"{registry.host}/{GOOD}")
    registry, puller = serve({"no-length": True, "short": True})
    # Whether it was cut or is too short cannot be told: it is resumed, and then there is nothing more.
    assert puller.refused(f"{registry.host}/e15-uncompressed").reason is Reason.SIZE_MISMATCH


def test_another_range_than_asked_for_is_not_put_together(serve: Serve) -> None:
    registry, puller = serve({"cut": 0.6, "other-range": True})
    assert puller.refused(f"{registry.host}/{GOOD}").reason is Reason.REGISTRY_UNREACHABLE


@pytest.mark.parametrize("fault", ["drip", "silent"])
def test_a_source_that_hardly_sends_has_stalled(fault: str, serve: Serve) -> None:
    registry, puller = serve({fault: True}, patience=IMPATIENCE)
    refusal = puller.refused(f"{registry.host}/{GOOD}")
    assert (refusal.reason, refusal.details) == (Reason.STALLED, {"registry": registry.host})
    assert len(puller.pauses) >= PATIENCE.tries - 1


def test_busy_registries_are_asked_again_with_longer_pauses(serve: Serve) -> None:
    registry, puller = serve({"busy": 2})
    puller.pull(f"{registry.host}/e15-uncompressed")
    first, second = puller.pauses[:2]
    assert PATIENCE.first_pause <= first < second
    registry, puller = serve({"busy": 99})
    refusal = puller.refused(f"{registry.host}/e15-uncompressed")
    facts = {"registry": registry.host, "status": 503, "code": "UNAVAILABLE"}
    assert (refusal.reason, refusal.details) == (Reason.REGISTRY_UNREACHABLE, facts)
    assert len(registry.seen) == PATIENCE.tries


@pytest.mark.parametrize("fault", ["limit", "limit-date"])
def test_a_registry_is_not_asked_before_the_time_it_names(fault: str, serve: Serve) -> None:
    registry, puller = serve({fault: 30})
    puller.pull(f"{registry.host}/e15-uncompressed")
    # Two for each document and blob, and jitter would only make it more.
    assert len(puller.pauses) >= 2
    assert max(puller.pauses) >= 25


def test_without_a_time_the_pauses_after_a_limit_grow(serve: Serve) -> None:
    registry, puller = serve({"limit-bare": True})
    puller.pull(f"{registry.host}/e15-uncompressed")
    first, second = puller.pauses[:2]
    assert 1 < first <= 2.5 < second <= 5


def test_nobody_waits_for_a_limit_that_is_far_away(serve: Serve) -> None:
    registry, puller = serve({"limit": 3600})
    refusal = puller.refused(f"{registry.host}/{GOOD}")
    assert (refusal.reason, refusal.details["retry_after"]) == (Reason.RATE_LIMITED, 3601)
    assert (len(registry.seen), puller.pauses) == (1, [])
    registry, puller = serve({"limit": 3}, patience=replace(PATIENCE, tries=2))
    refusal = puller.refused(f"{registry.host}/{GOOD}")
    assert (refusal.reason, refusal.details["retry_after"]) == (Reason.RATE_LIMITED, 4)


# Names


@pytest.mark.parametrize(
    "faults, reason, code",
    [
        ({"deny": True}, Reason.UNAUTHORIZED_OR_MISSING, None),
        ({"missing-manifest": True}, Reason.MANIFEST_MISSING, "MANIFEST_UNKNOWN"),
        ({"missing-name": True}, Reason.REPOSITORY_MISSING, "NAME_UNKNOWN"),
        ({"forbid": True}, Reason.SOURCE_FORBIDDEN, "DENIED"),
    ],
)
def test_four_ways_to_say_no(faults: Faults, reason: Reason, code: str | None, serve: Serve) -> None:
    registry, puller = serve(faults)
    for credentials in (None, LOGIN):
        refusal = puller.refused(f"{registry.host}/{GOOD}", credentials)
        assert (refusal.reason, refusal.details.get("code")) == (reason, code)
    assert puller.pauses == []


def test_nothing_listens_there(blobs: FolderBlobs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        host = f"127.0.0.1:{probe.getsockname()[1]}"
    puller = Puller(blobs, [host])
    assert puller.refused(f"{host}/x").reason is Reason.REGISTRY_UNREACHABLE
    assert len(puller.pauses) == PATIENCE.tries - 1


def test_loopback_is_not_trusted_by_itself(serve: Serve, blobs: FolderBlobs) -> None:
    registry, _ = serve()
    assert Puller(blobs, []).refused(f"{registry.host}/{GOOD}").reason is Reason.REGISTRY_UNREACHABLE
    assert registry.seen == []


# Who is told what


def authorized(registry: FaultyRegistry) -> Mapping[bool, set[Any]]:
    """What was said to the registry (False) and to where it leads (True)."""
    told: dict[bool, set[Any]] = {False: set(), True: set()}
    for request in registry.seen:
        told[request["storage"]].add(request["authorization"])
    return told


@pytest.mark.parametrize("faults", [{"basic": True}, {"token": 0, "basic": True}])
def test_credentials_are_sent_when_asked_for_and_never_on(faults: Faults, serve: Serve) -> None:
    registry, puller = serve({**faults, "redirect": True})
    assert puller.refused(f"{registry.host}/{GOOD}").reason is Reason.UNAUTHORIZED_OR_MISSING
    wrong = Credentials(USER, "wrong")
    assert puller.refused(f"{registry.host}/{GOOD}", wrong).reason is Reason.UNAUTHORIZED_OR_MISSING
    registry.seen.clear()
    puller.pull(f"{registry.host}/{GOOD}", LOGIN)
    assert authorized(registry)[True] == {None}
    assert registry.seen[0]["authorization"] is None
    if "token" in faults:
        said = {request["authorization"] for request in registry.asked("/v2/")} - {None}
        assert all(each.startswith("Bearer ") for each in said)
        assert {request["authorization"] for request in registry.asked("/token")} == {BASIC}


@pytest.mark.parametrize("faults", [{"token": 1}, {"token": 1, "expired-is-400": True}, {"token": 2}])
def test_a_token_that_expires_is_asked_for_anew(faults: Faults, serve: Serve) -> None:
    registry, puller = serve(faults)
    puller.pull(f"{registry.host}/{GOOD}")
    assert len(registry.asked("/token")) > 1


def test_a_realm_in_the_clear_is_asked_only_where_that_is_listed(serve: Serve, blobs: FolderBlobs) -> None:
    other, _ = serve({"basic": True})
    registry, puller = serve({"token": 0, "realm": f"http://{other.host}/token"})
    refusal = puller.refused(f"{registry.host}/{GOOD}", LOGIN)
    assert (refusal.reason, refusal.details["host"]) == (Reason.REGISTRY_UNREACHABLE, other.host)
    assert other.seen == []
    # Listed, the realm is told who asks, and what it says goes to the registry alone.
    registry.tokens = other.tokens
    listed = Puller(blobs, [registry.host, other.host])
    listed.pull(f"{registry.host}/{GOOD}", LOGIN)
    assert {request["authorization"] for request in other.seen} == {BASIC}
    assert BASIC not in authorized(registry)[False]


@pytest.mark.parametrize(
    "realm", ["", "file:///etc/passwd", "http://fx:y@127.0.0.1/", "//", "gopher://x/", "http://[/"]
)
def test_a_realm_that_is_none(realm: str, serve: Serve) -> None:
    registry, puller = serve({"token": 0, "realm": realm})
    assert puller.refused(f"{registry.host}/{GOOD}", LOGIN).reason is Reason.REGISTRY_UNREACHABLE


def test_redirects_lead_nowhere_else(serve: Serve) -> None:
    for faults in ({"redirect-loop": True}, {"redirect-file": True}, {"redirect-to": "http://127.0.0.1:1/x"}):
        registry, puller = serve(faults)
        assert puller.refused(f"{registry.host}/{GOOD}").reason is Reason.REGISTRY_UNREACHABLE
        assert puller.pauses == []
        assert len(registry.seen) < 40


def test_who_a_redirect_leads_to_cannot_ask_who_we_are(serve: Serve, blobs: FolderBlobs) -> None:
    """A 401 from there is no challenge that is answered."""
    thief, _ = serve({"basic": True})
    registry, _ = serve({"basic": True, "redirect-to": f"http://{thief.host}/v2/{GOOD}/blobs/sha256:{'0' * 64}"})
    puller = Puller(blobs, [registry.host, thief.host])
    refusal = puller.refused(f"{registry.host}/{GOOD}", LOGIN)
    assert (refusal.reason, refusal.details["status"]) == (Reason.REGISTRY_UNREACHABLE, 401)
    assert thief.seen
    assert {request["authorization"] for request in thief.seen} == {None}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for 127.0.0.1, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    kept = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = tmp_path_factory.mktemp("tls") / "registry.pem"
    path.write_bytes(kept + made.public_bytes(Encoding.PEM))
    return path


def test_tls_is_the_rule(certificate: Path, blobs: FolderBlobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown certificate hears nothing; and nobody is led from TLS to plain http that is not listed."""
    puller = Puller(blobs, [])
    with FaultyRegistry(FIXTURES, {"basic": True}, certificate) as registry:
        assert puller.refused(f"{registry.host}/{GOOD}", LOGIN).reason is Reason.REGISTRY_UNREACHABLE
        assert registry.seen == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        registry.faults = {"basic": True, "redirect": True}
        refusal = puller.refused(f"{registry.host}/{GOOD}", LOGIN)
        assert (refusal.reason, refusal.details["host"]) == (Reason.REGISTRY_UNREACHABLE, registry.storage)
        assert authorized(registry)[True] == set()
        registry.faults = {"basic": True}
        puller.pull(f"{registry.host}/{GOOD}", LOGIN)
        registry.faults = {"drip-head": True}
        assert Puller(blobs, [], IMPATIENCE).refused(f"{registry.host}/{GOOD}").reason is Reason.STALLED


# What is here already


def test_what_the_store_has_is_not_fetched_again_unless_it_is_damaged(serve: Serve, blobs: FolderBlobs) -> None:
    registry, puller = serve()
    (variant,) = puller.pull(f"{registry.host}/{GOOD}")
    registry.seen.clear()
    puller.pull(f"{registry.host}/{GOOD}")
    layer = variant.layers[0].digest
    assert registry.asked(layer) == []
    path = blobs._path(layer)
    path.write_bytes(b"x" * path.stat().st_size)
    puller.pull(f"{registry.host}/{GOOD}")
    assert len(registry.asked(layer)) == 1


def test_many_at_once(serve: Serve) -> None:
    registry, puller = serve({"cut": 0.5, "redirect": True, "token": 3})
    outcomes: list[object] = []

    def pull() -> None:
        outcomes.append(puller.pull(f"{registry.host}/{GOOD}")[0].digest)

    threads = [threading.Thread(target=pull) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 6
    assert len(set(outcomes)) == 1


def test_what_many_want_is_fetched_once(serve: Serve, tmp_path: Path) -> None:
    """Two images that share a layer, each registered by several at once: the registry counts."""
    shared = file("shared", bytes(range(256)) * 4000)
    layouts = {name: Layout(tmp_path / "layouts" / name) for name in ("one", "two")}
    images = {
        name: layout.image([[shared], [file("which", name.encode())]], platform="linux/amd64", ref="1")
        for name, layout in layouts.items()
    }
    registry, puller = serve(root=tmp_path / "layouts")
    begin = threading.Barrier(6)
    found: list[str | None] = []

    def pull(name: str) -> None:
        begin.wait()
        found.append(puller.pull(f"{registry.host}/{name}:1")[0].digest)

    threads = [threading.Thread(target=pull, args=(name,)) for name in ("one", "two") * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted([image.manifest_digest for image in images.values()] * 3)
    (variant,) = puller.pull(f"{registry.host}/one:1")
    for layer in variant.layers:
        assert len(registry.asked(layer.digest)) == 1


# A real one


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRegistry]:
    with RealRegistry(tmp_path_factory.mktemp("real") / "registry") as registry:
        yield registry


@needs_registry
@pytest.mark.parametrize("name", ["e13-zstd", "e15-uncompressed", "e20-empty-layers"])
def test_a_real_registry(name: str, real: RealRegistry, blobs: FolderBlobs) -> None:
    digest = real.push(FIXTURES / name / "layout", f"fx/{name}", "1")
    puller = Puller(blobs, [real.host])
    for suffix in (":1", f"@{digest}", f":none@{digest}"):
        (variant,) = puller.pull(f"{real.host}/fx/{name}{suffix}")
        assert digest in (variant.digest, variant.index_digest)


@needs_registry
def test_a_real_registry_says_no(real: RealRegistry, blobs: FolderBlobs, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    images = [
        layout.image([[file("arch", text)]], platform=text, listed=False) for text in ("linux/amd64", "linux/arm64")
    ]
    layout.index(images)
    real.push(layout.path, "fx/many")
    puller = Puller(blobs, [real.host])
    variants = puller.pull(f"{real.host}/fx/many", platforms=(AMD64, ARM64))
    assert [variant.digest for variant in variants] == [image.manifest_digest for image in images]
    assert puller.refused(f"{real.host}/fx/many:none").reason is Reason.MANIFEST_MISSING
    assert puller.refused(f"{real.host}/fx/many@sha256:{'0' * 64}").reason is Reason.MANIFEST_MISSING
    missing = puller.refused(f"{real.host}/fx/none")
    assert missing.reason in (Reason.MANIFEST_MISSING, Reason.REPOSITORY_MISSING)
    assert puller.pauses == []


@needs_registry
def test_a_real_registry_with_a_password(blobs: FolderBlobs, tmp_path: Path) -> None:
    with RealRegistry(tmp_path / "registry", auth=True) as real:
        digest = real.push(FIXTURES / "e15-uncompressed" / "layout", "fx/locked")
        puller = Puller(blobs, [real.host])
        for credentials in (None, Credentials(real_registry.USER, "wrong")):
            assert puller.refused(f"{real.host}/fx/locked", credentials).reason is Reason.UNAUTHORIZED_OR_MISSING
        (variant,) = puller.pull(f"{real.host}/fx/locked", Credentials(real_registry.USER, real_registry.PASSWORD))
        assert digest in (variant.digest, variant.index_digest)
