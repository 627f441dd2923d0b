"""The in-memory provider passes the provider suite, and its knobs do what they say."""

import threading

import pytest

from sandbay.domain.ids import AllocationId
from sandbay.domain.platform import Platform
from sandbay.domain.reasons import Reason
from sandbay.domain.release import IMAGE_ID, MANIFEST_DIGEST, Artifact, ImageConfig, Known, Layer, Variant
from sandbay.ports.provider import Provider
from tests.contracts.provider_harness import GENEROUS, Offer, Variants, order_for, refused, silent, start
from tests.contracts.provider_suite import ProviderSuite
from tests.fakes.memory_files import Entry
from tests.fakes.memory_provider import NETWORKED, STEPS, CrashError, MemoryProvider, World, small_system


def _variant(number: int, config: ImageConfig) -> Variant:
    digest = f"sha256:{number:064x}"
    return Variant(
        platform=Platform.of("linux", "amd64"),
        artifacts={name: Artifact(digest, Known.COMPUTED) for name in (MANIFEST_DIGEST, IMAGE_ID)},
        providers=("memory",),
        layers=(Layer(digest, digest, 100, "application/vnd.oci.image.layer.v1.tar"),),
        config=config,
        manifest_size=10,
        config_size=10,
    )


WEB = ImageConfig(entrypoint=("echo", "E"), cmd=("C",), env=("PATH=/bin", "WEB=1"))
DATA = ImageConfig(env=("PATH=/bin",), user="agent", workdir="/srv/deep")


class MemoryHarness:
    """Nothing here outlives the object."""

    offers: frozenset[Offer] = frozenset()

    def __init__(self) -> None:
        self.world = World()
        self.variants = Variants(_variant(1, WEB), _variant(2, DATA), _variant(3, WEB), _variant(4, WEB))
        script = {"etc/script": Entry(0o755, data=b"#!/no/such/interpreter\n")}
        for variant, which, without in (
            (self.variants.web, b"web", ()),
            (self.variants.data, b"data", ()),
            (self.variants.shellless, b"web", ("sh",)),
        ):
            system = small_system("suite", leave_out=without)
            self.world.contents[variant.content_key] = system | script | {"etc/which": Entry(data=which)}
        self.world.damaged.add(self.variants.damaged.content_key)
        self.provider: Provider = MemoryProvider(self.world, NETWORKED)

    def restart(self) -> None:
        self.provider = MemoryProvider(self.world, NETWORKED)

    def trace_of(self, variant: Variant) -> object:
        return self.world.unpacked[variant.content_key]

    def kill(self, allocation: AllocationId) -> None:
        self.world.sandboxes[allocation].gone.set()


@pytest.fixture
def harness() -> MemoryHarness:
    return MemoryHarness()


class TestMemoryProvider(ProviderSuite):
    pass


def test_it_fails_as_often_as_it_is_told(harness: MemoryHarness) -> None:
    harness.world.knobs.fail_prepare(Reason.NO_SPACE, times=2)
    for _ in range(2):
        with refused(Reason.NO_SPACE):
            harness.provider.prepare(harness.variants.web, silent)
    harness.provider.prepare(harness.variants.web, silent)
    assert list(harness.provider.held()) == [harness.variants.web.content_key]


def test_it_boots_another_image_when_told(harness: MemoryHarness) -> None:
    other = {MANIFEST_DIGEST: "sha256:" + "f" * 64}
    harness.world.knobs.boots = other
    harness.provider.prepare(harness.variants.web, silent)
    assert harness.provider.create(order := order_for(harness.variants.web)).artifacts == other
    assert harness.provider.booted(order.allocation).artifacts == other


def test_a_held_prepare_joins_and_ends_when_released(harness: MemoryHarness) -> None:
    web = harness.variants.web
    threads = [threading.Thread(target=harness.provider.prepare, args=(web, silent)) for _ in range(3)]
    with harness.world.knobs.holding_prepare():
        for thread in threads:
            thread.start()
        assert harness.world.knobs.prepare_began.wait(GENEROUS)
        assert list(harness.provider.held()) == []
    for thread in threads:
        thread.join(GENEROUS)
    assert list(harness.provider.held()) == [web.content_key]
    assert harness.world.unpacked[web.content_key] == 1


@pytest.mark.parametrize("step", STEPS)
def test_after_a_crash_at_any_step_everything_can_be_repeated(harness: MemoryHarness, step: str) -> None:
    web, order = harness.variants.web, order_for(harness.variants.web)
    harness.world.knobs.crash_at = step
    crashes = 0
    for act in (
        lambda: harness.provider.prepare(web, silent),
        lambda: harness.provider.create(order),
        lambda: harness.provider.destroy(order.allocation),
        lambda: harness.provider.remove(web.content_key),
    ):
        try:
            act()
        except CrashError:
            crashes += 1
            harness.restart()
            act()
    assert crashes == 1
    assert list(harness.provider.held()) == []
    assert list(harness.provider.list_allocations()) == []


def test_any_variant_can_be_run_without_saying_what_is_in_it(harness: MemoryHarness) -> None:
    sandbox = start(harness, unknown := _variant(9, ImageConfig()))
    assert sandbox.run("cat", "/etc/image").stdout.decode() == unknown.content_key
