"""Whoever gives up, or is killed, takes nothing away from the others and leaves nothing in the way of a next try."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from sandbay.adapters.clock.system import SystemClock
from sandbay.domain.errors import RefusedError
from sandbay.domain.readiness import Readiness, ReadinessState
from sandbay.domain.reasons import Reason
from sandbay.domain.release import ContentKey, Variant
from sandbay.domain.want import WantedSet, Why
from sandbay.engine.layers import LayerKind, LayerOrder, LayerTrees, Proof
from sandbay.engine.media import Compression
from sandbay.engine.unpack import Unpacked
from sandbay.node.images import ImageKeeper
from sandbay.ports.node_link import Wanted
from sandbay.ports.provider import PrepareProgress, Progress, Provider
from tests.app.world import eventually
from tests.engine import test_store
from tests.engine.store_support import AMD64, Host, ignore
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]

NOISE = random.Random(53)  # noqa: S311 - the same moments every time


class StoreProvider:
    """As much of a provider as readiness needs: a layer store. `fails` is raised by the next prepares."""

    def __init__(self, host: Host) -> None:
        self._store = host.store
        self.prepared = 0
        self.fails: list[RefusedError] = []

    def prepare(self, variant: Variant, progress: Progress) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.prepared += 1
        self._store.prepare(variant, progress)

    def probe(self, variant: Variant) -> None:
        self._store.verified(variant.content_key)

    def remove(self, key: ContentKey) -> None:
        self._store.remove(key)

    def disk(self) -> None:
        """Room is not what these tests are about."""

    def held(self) -> Sequence[ContentKey]:
        return self._store.held()


class Keeping:
    """A node's keeper of images, which Core agrees with whatever it says."""

    def __init__(self, host: Host, variants: Sequence[Variant], slots: int = 2) -> None:
        self.provider = StoreProvider(host)
        self.variants = {variant.content_key: variant for variant in variants}
        self.said: dict[ContentKey, Readiness] = {}
        self.keeper = ImageKeeper(
            cast("Provider", self.provider),
            SystemClock(),
            self._hear,
            lambda: pytest.fail("they agree"),
            lambda _: frozenset(),
            slots,
        )

    def _hear(self, key: ContentKey, readiness: Readiness) -> bool:
        self.said[key] = readiness
        return True

    def want(self, *variants: Variant) -> None:
        items = WantedSet(tuple((variant.content_key, Why.WISH) for variant in variants))
        self.keeper.want(Wanted(items, self.variants))

    def state(self, variant: Variant) -> ReadinessState:
        return self.said.get(variant.content_key, Readiness()).state

    def until(self, variant: Variant, state: ReadinessState) -> None:
        eventually(lambda: self.state(variant) is state, within=60)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def variants(host: Host, tmp_path: Path) -> list[Variant]:
    """Two images on one base of some size, in small files and a large one."""
    layout = Layout(tmp_path / "layout")
    base = layout.layer([*(file(f"f{n}", NOISE.randbytes(500)) for n in range(200)), file("large", bytes(4 << 20))])
    for ref in ("one", "two"):
        layout.image([base, [file("which", ref)]], platform=AMD64, ref=ref)
    return [host.register(layout.path, ref) for ref in ("one", "two")]


@pytest.fixture
def keeping(host: Host, variants: list[Variant]) -> Iterator[Keeping]:
    it = Keeping(host, variants)
    yield it
    it.keeper.close()


@pytest.mark.slow
def test_cancelled_and_asked_for_again_fifty_times(host: Host, variants: list[Variant], keeping: Keeping) -> None:
    variant = variants[0]
    pause = threading.Event()
    for number in range(50):
        keeping.want(variant)
        pause.wait(NOISE.random() * 0.06)
        keeping.want()
        if number % 10 == 9:
            keeping.want(variant)
            keeping.until(variant, ReadinessState.READY)
            host.check_whole()
            keeping.want()
            keeping.keeper.drop(variant.content_key, keeping.said[variant.content_key].attempt)
            keeping.until(variant, ReadinessState.ABSENT)
    keeping.want(variant)
    keeping.until(variant, ReadinessState.READY)
    host.store.verify(variant.content_key, lambda _: None)
    assert keeping.provider.prepared > 10, "they did begin"


def test_what_nobody_wants_any_more_ends_and_leaves_its_slot(host: Host, variants: list[Variant]) -> None:
    keeping = Keeping(host, variants, slots=1)
    began, go = threading.Event(), threading.Event()
    real = keeping.provider.prepare

    def held_up(variant: Variant, progress: Progress) -> None:
        def slowly(it: PrepareProgress) -> None:
            began.set()
            go.wait(60)
            progress(it)

        real(variant, slowly)

    cast("Any", keeping.provider).prepare = held_up
    keeping.want(variants[0])
    assert began.wait(60)
    keeping.want()
    assert keeping.state(variants[0]) is ReadinessState.ABSENT
    go.set()
    keeping.want(variants[1])
    keeping.until(variants[1], ReadinessState.READY)
    eventually(lambda: host.store.held() == (variants[1].content_key,))
    keeping.keeper.close()
    host.check_whole()


class LeftError(Exception):
    """Whoever asked has gone."""


def in_thread(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


@pytest.mark.parametrize("leaves", ["maker", "waiter"])
def test_who_leaves_cancels_nobody_else(leaves: str, host: Host, variants: list[Variant]) -> None:
    """Two images on one base: one prepare makes the base while the other one waits for it."""
    half, go = threading.Event(), threading.Event()

    def make(progress: PrepareProgress) -> None:
        if progress.bytes_done:
            half.set()
            go.wait(60)
            if leaves == "maker":
                raise LeftError

    def wait(_: PrepareProgress) -> None:
        if leaves == "waiter" and half.is_set():
            raise LeftError

    outcomes: dict[str, bool] = {}

    def run(who: str, variant: Variant, progress: Progress) -> None:
        try:
            host.store.prepare(variant, progress)
            outcomes[who] = True
        except LeftError:
            outcomes[who] = False

    maker = in_thread(lambda: run("maker", variants[0], make))
    assert half.wait(60)
    waiter = in_thread(lambda: run("waiter", variants[1], wait))
    if leaves == "waiter":
        waiter.join()
    go.set()
    maker.join()
    waiter.join()
    assert outcomes == {"maker": leaves == "waiter", "waiter": leaves == "maker"}
    assert len(host.store.held()) == 1
    host.check_whole()


def test_two_that_fail_at_layers_of_each_other_both_end(host: Host) -> None:
    """Each has failed to make one layer and still claims what it has, when it comes to the other's."""
    trees, keys = LayerTrees(host.root), ["sha256:" + digit * 64 for digit in "ab"]
    begun = threading.Barrier(2)

    def fail(_: Path) -> Unpacked:
        begun.wait(60)
        raise LeftError

    def again(_: Path) -> Unpacked:
        raise LeftError

    def run(first: str, second: str) -> None:
        with ExitStack() as claims:
            for key, make in ((first, fail), (second, again)):
                with suppress(LeftError):
                    trees.claim(LayerOrder(key, LayerKind.DIFF, key, Proof(key, 1, Compression.PLAIN), make), claims)

    threads = [threading.Thread(target=run, args=order, daemon=True) for order in (keys, keys[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_a_killed_process_hands_its_layer_to_who_waits(host: Host, variants: list[Variant], tmp_path: Path) -> None:
    """The one who makes it is killed in the middle of the layer; the other one, in this process, makes it then."""
    program = test_store.PREPARER.replace("ignore)", "halt)").replace(
        "print(",
        "halt = lambda it: it.bytes_done > 50_000 and (print('half', flush=True), sys.stdin.read())\nprint(",
        1,
    )
    command = [sys.executable, "-c", program, str(tmp_path), str(tmp_path / "layout"), "one"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipe = subprocess.PIPE
    cwd = Path(__file__).parents[2]
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, cwd=cwd) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"half\n"
        waiting = in_thread(lambda: host.store.prepare(variants[1], ignore))
        waiting.join(0.2)
        assert waiting.is_alive(), "nobody makes what another one is making"
        process.kill()
    waiting.join()
    assert host.store.held() == (variants[1].content_key,)
    host.store = host.restarted()
    host.check_whole()


def test_nobody_asks_a_registry_before_it_wants_to_be_asked(variants: list[Variant], keeping: Keeping) -> None:
    variant = variants[0]
    keeping.provider.fails = [RefusedError(Reason.RATE_LIMITED, "later", details={"retry_after": 900})]
    before = datetime.now(UTC)
    keeping.want(variant)
    keeping.until(variant, ReadinessState.FAILED)
    retry_at = keeping.said[variant.content_key].retry_at
    assert retry_at is not None
    assert retry_at >= before + timedelta(seconds=900)


def test_room_that_is_made_is_used_at_once(variants: list[Variant], keeping: Keeping) -> None:
    keeping.want(variants[0])
    keeping.until(variants[0], ReadinessState.READY)
    keeping.provider.fails = [RefusedError(Reason.NO_SPACE, "the disk is full")]
    keeping.want(variants[1])
    keeping.until(variants[1], ReadinessState.FAILED)
    assert keeping.provider.prepared == 1, "it is not tried again in a loop"
    keeping.keeper.drop(variants[0].content_key, keeping.said[variants[0].content_key].attempt)
    keeping.until(variants[1], ReadinessState.READY)
