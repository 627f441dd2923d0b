"""Each fault of a registry ends in the right reason or is overcome, whoever reads: a registration, or a node.

A registration reads the source; a node reads the installation's own store where that is a registry. Time that passes by
waiting is jumped over, so what is bounded here is the number of requests and of pauses.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.blobs.registry import RegistryBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.adapters.image_source.registry import RegistrySources
from sandbay.domain.errors import Refusal, RefusedError
from sandbay.domain.reasons import Reason
from sandbay.domain.reference import OciReference, parse_oci
from sandbay.domain.registry import Credentials
from sandbay.domain.release import Variant
from sandbay.engine.registry.pace import Pace, Patience
from sandbay.engine.registry.trust import Trust
from sandbay.engine.store import LayerStore
from sandbay.ports.image_source import Wanted
from tests.contracts.image_source_suite import AMD64, FIXTURES
from tests.support.faulty_registry import BASIC, PASSWORD, USER, FaultyRegistry
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]

IMAGE = "e01-attestation-first"
LOGIN = Credentials(USER, PASSWORD)
PATIENCE = Patience(connect=20, read=20, tries=4)
IMPATIENCE = Patience(connect=20, read=0.5, head=0.5, tries=3, window=0.2, window_bytes=1_000_000)
MOST_REQUESTS, MOST_PAUSES = 60, 30


@dataclass(frozen=True)
class Case:
    """What each reader comes to; None is success."""

    faults: Mapping[str, Any]
    registration: Reason | None = None
    node: Reason | None = None
    patience: Patience = PATIENCE


def both(reason: Reason | None, patience: Patience = PATIENCE, **faults: Any) -> Case:
    """Of faults that both readers meet."""
    named = {name.replace("_", "-"): value for name, value in faults.items()}
    return Case(named, reason, reason, patience)


CASES = {
    "healthy": both(None),
    "cut": both(None, cut=0.6),
    "cut, and the whole sent again": both(None, cut=0.6, no_range=True),
    "cut, and other bytes resumed": both(None, cut=0.6, wrong_tail=True),
    "cut, and too much resumed": both(None, cut=0.6, long_tail=True),
    "cut, and resumed elsewhere": both(Reason.REGISTRY_UNREACHABLE, cut=0.6, other_range=True),
    "cut behind a redirect": both(None, cut=0.6, redirect=True),
    "cut, busy, and tokens that expire": both(None, cut=0.6, busy=1, token=2),
    "one wrong byte": both(Reason.DIGEST_MISMATCH, flip=True),
    "one wrong byte, cut": both(Reason.DIGEST_MISMATCH, flip=True, cut=0.5),
    "too short": both(Reason.SIZE_MISMATCH, short=True),
    "no length": Case({"no-length": True}, None, Reason.REGISTRY_UNREACHABLE),
    "another digest in the header": Case({"header-digest": True}, Reason.DIGEST_MISMATCH, None),
    "another type in the header": both(None, ctype=True),
    "tokens that expire": both(None, token=1),
    "tokens that expire as bad requests": both(None, token=1, expired_is_400=True),
    "basic": both(None, basic=True),
    "401 after a good token": both(Reason.UNAUTHORIZED_OR_MISSING, deny=True),
    "403": both(Reason.SOURCE_FORBIDDEN, forbid=True),
    "404 of the name": Case({"missing-name": True}, Reason.REPOSITORY_MISSING, Reason.BLOB_MISSING),
    "404 of the manifest": Case({"missing-manifest": True}, Reason.MANIFEST_MISSING, None),
    "429 with seconds": both(None, limit=3),
    "429 with a date": both(None, limit_date=3),
    "429 with a date by a wrong clock": both(None, limit_date=30, skew=-86_400),
    "429 without": both(None, limit_bare=True),
    "429 for an hour": both(Reason.RATE_LIMITED, limit=3600),
    "503 twice": both(None, busy=2),
    "503 for ever": both(Reason.REGISTRY_UNREACHABLE, busy=10**6),
    "redirects": both(None, redirect=True, basic=True),
    "redirects for ever": both(Reason.REGISTRY_UNREACHABLE, redirect_loop=True),
    "redirects to a file": both(Reason.REGISTRY_UNREACHABLE, redirect_file=True),
    "drips": both(Reason.STALLED, IMPATIENCE, drip=True),
    "drips the heads of answers": both(Reason.STALLED, IMPATIENCE, drip_head=True),
    "drips the heads of tokens' answers": both(Reason.STALLED, IMPATIENCE, drip_head=True, token=1),
    "drips the sizes of chunks": both(Reason.STALLED, IMPATIENCE, drip_chunks=True),
    "says for ever that it will answer": both(Reason.STALLED, IMPATIENCE, interim=True),
    "falls silent": both(Reason.STALLED, IMPATIENCE, silent=True),
    "manifests without end": Case({"huge": True}, Reason.LIMIT_EXCEEDED, None),
}


@dataclass
class Waiting:
    """A clock that jumps over every pause, and the pauses."""

    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def clock(self) -> float:
        return time.monotonic() + sum(self.pauses)

    def pace(self, patience: Patience) -> Pace:
        return Pace(patience, sleep=self.sleep, clock=self.clock)


class Readers:
    """A registry that misbehaves, and what reads from it."""

    def __init__(self, scratch: Path, registry: FaultyRegistry, pace: Pace, held: ExitStack) -> None:
        self.scratch, self.registry, self._pace, self._held = scratch, registry, pace, held
        self.trust = Trust([registry.host, registry.storage])

    def variant(self, name: str) -> Variant:
        """As it was registered when all was well."""
        folder = self.registry.root / name
        tree = folder / "layout" if (folder / "layout").is_dir() else folder
        blobs = FolderBlobs(self.scratch / "elsewhere")
        return LayoutSource(lambda: FolderTree(tree)).read(Wanted((AMD64,)), blobs, lambda _: None)[0]

    def store(self, name: str) -> LayerStore:
        """A node's store, fed by the registry."""
        place = parse_oci(f"{self.registry.host}/{name}")
        assert isinstance(place, OciReference)
        blobs = RegistryBlobs(place, "ins_1", lambda: LOGIN, self.trust, self.scratch / "pushing", self._pace)
        return LayerStore(self.scratch / "store", self._held.enter_context(blobs))

    def prepare(self, name: str) -> Variant:
        """What a node does."""
        store, variant = self.store(name), self.variant(name)
        try:
            store.prepare(variant, lambda _: None)
        finally:
            left = [len(list((self.scratch / "store" / each).iterdir())) for each in ("staging", "l", "layers")]
            assert left[0] == 0
            assert store.held() or left == [0, 0, 0], "what is refused leaves nothing behind"
        assert store.held() == (variant.content_key,)
        store.verify(variant.content_key, lambda _: None)
        return variant

    def register(self, name: str) -> Variant:
        """What a registration does."""
        reference = parse_oci(f"{self.registry.host}/{name}")
        assert isinstance(reference, OciReference)
        blobs = FolderBlobs(self.scratch / "blobs")
        source = RegistrySources(self.trust, self._pace).source(reference, LOGIN)
        try:
            (variant,) = source.read(Wanted((AMD64,)), blobs, lambda _: None)
        finally:
            assert list((self.scratch / "blobs" / "incoming").iterdir()) == []
        for layer in variant.layers:
            assert blobs.size(layer.digest) == layer.size
        return variant


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as it:
        yield it


@pytest.mark.parametrize("reader", ["registration", "node"])
@pytest.mark.parametrize("name", CASES)
def test_each_fault_ends_rightly_and_soon(
    name: str, reader: str, held: ExitStack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    case, waiting = CASES[name], Waiting()
    registry = held.enter_context(FaultyRegistry(FIXTURES, case.faults))
    readers = Readers(tmp_path, registry, waiting.pace(case.patience), held)
    expected = case.registration if reader == "registration" else case.node
    refusal: Refusal | None = None
    try:
        (readers.register if reader == "registration" else readers.prepare)(IMAGE)
    except RefusedError as error:
        refusal = error.refusal
    assert (refusal and refusal.reason) is expected, refusal
    assert 0 < len(registry.seen) < MOST_REQUESTS
    assert len(waiting.pauses) < MOST_PAUSES
    if {"limit", "limit-date"} & set(case.faults) and refusal is None:
        wanted = max(case.faults.get("limit", 0), case.faults.get("limit-date", 0))
        assert max(waiting.pauses) > wanted - 1.5, "nobody asks before the time that was named"
    assert {request["authorization"] for request in registry.seen if request["storage"]} <= {None}
    for secret in {PASSWORD, BASIC.removeprefix("Basic "), *registry.tokens} - {""}:
        assert secret not in f"{refusal}{caplog.text}"
    assert str(tmp_path) not in f"{refusal}"


def test_a_transfer_that_never_fits_together_is_no_verdict_on_the_content(held: ExitStack, tmp_path: Path) -> None:
    """A node that said `digest_mismatch` would never try again."""
    registry = held.enter_context(FaultyRegistry(FIXTURES, {"cut": 0.6, "always": True, "wrong-tail": True}))
    readers = Readers(tmp_path, registry, Waiting().pace(PATIENCE), held)
    with pytest.raises(RefusedError) as caught:
        readers.prepare(IMAGE)
    assert caught.value.refusal.reason is Reason.REGISTRY_UNREACHABLE
    assert len(registry.seen) < MOST_REQUESTS


def test_a_limit_holds_for_everybody_who_asks_that_registry(held: ExitStack, tmp_path: Path) -> None:
    """A registration is told to wait; a node that comes meanwhile asks nothing before the time has come."""
    told, over = threading.Event(), threading.Event()
    jumped: list[float] = []

    def sleep(seconds: float) -> None:
        told.set()
        over.wait(60)
        jumped.append(seconds)

    pace = Pace(PATIENCE, sleep=sleep, clock=lambda: time.monotonic() + sum(jumped))
    registry = held.enter_context(FaultyRegistry(FIXTURES, {"limit": 30}))
    readers = Readers(tmp_path, registry, pace, held)
    outcomes: list[str | None] = []
    first = threading.Thread(target=lambda: outcomes.append(readers.register(IMAGE).digest))
    first.start()
    assert told.wait(60)
    asked = len(registry.seen)
    second = threading.Thread(target=lambda: outcomes.append(readers.prepare(IMAGE).digest))
    second.start()
    second.join(0.5)
    assert (asked, len(registry.seen), outcomes) == (1, 1, [])
    registry.faults = {}
    over.set()
    first.join()
    second.join()
    assert len(outcomes) == 2
    assert len(set(outcomes)) == 1


@pytest.mark.slow
def test_others_go_on_while_one_drips(held: ExitStack, tmp_path: Path) -> None:
    """For both readers: what stalls holds nobody else up."""
    slow, well = tmp_path / "slow", tmp_path / "well"
    for root in (slow, well):
        Layout(root / "fx").image([[file("which", os.urandom(2000))]], platform="linux/amd64")
    dripping = held.enter_context(FaultyRegistry(slow, {"drip": True}))
    healthy = held.enter_context(FaultyRegistry(well))
    patience = Patience(connect=20, read=20, tries=1, window=1000)
    stuck, fine = (Readers(tmp_path, each, Pace(patience), held) for each in (dripping, healthy))
    began = threading.Thread(target=lambda: _expect_end(stuck))
    began.start()
    while not dripping.asked("/blobs/"):
        time.sleep(0.01)
    assert fine.register("fx").digest
    assert fine.prepare("fx").digest
    assert began.is_alive()
    dripping.closing.set()
    began.join()


def _expect_end(readers: Readers) -> None:
    with pytest.raises(RefusedError):
        readers.register("fx")
