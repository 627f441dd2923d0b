"""The oci provider passes the provider suite, with real images, mounts and processes, and leaves nothing behind."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbay.adapters.blobs.folder import FolderBlobs
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from sandbay.adapters.providers.oci.provider import OciProvider
from sandbay.adapters.providers.oci.settings import OciSettings
from sandbay.domain.allocation import Presence
from sandbay.domain.canonical import canonical
from sandbay.domain.ids import AllocationId
from sandbay.domain.platform import Platform
from sandbay.domain.release import Variant
from sandbay.engine.store import LayerStore
from sandbay.ports.image_source import Wanted
from sandbay.ports.provider import Provider
from tests.contracts.provider_confinement import ConfinementSuite
from tests.contracts.provider_exec import ExecSuite
from tests.contracts.provider_harness import GENEROUS, Offer, Sandbox, Variants, start
from tests.contracts.provider_suite import SandboxSuite, StateSuite
from tests.contracts.provider_terminal import TerminalSuite
from tests.support.leaks import leftovers
from tests.support.oci_layout import BUSYBOX_CONFIG, HOST_PLATFORM, Layout, busybox_layers
from tests.support.tar_entries import Entry, file

pytestmark = pytest.mark.real
WEB = {**BUSYBOX_CONFIG, "Entrypoint": ["echo", "E"], "Cmd": ["C"], "Env": ["PATH=/bin", "WEB=1"]}
DATA = {**BUSYBOX_CONFIG, "User": "agent", "WorkingDir": "/srv/deep"}
SCRIPT = file("etc/script", b"#!/no/such/interpreter\n", 0o755)


@dataclass(frozen=True)
class Images:
    """Verified variants and the blobs that they are made of."""

    blobs: FolderBlobs
    blobs_folder: Path
    variants: Variants


@pytest.fixture(scope="module")
def images(real_sandboxes: None, tmp_path_factory: pytest.TempPathFactory) -> Images:
    folder = tmp_path_factory.mktemp("images")
    blobs = FolderBlobs(folder / "blobs")
    (system,) = busybox_layers()

    def variant(name: str, layers: list[list[Entry]], config: dict[str, object]) -> Variant:
        Layout(folder / name).image(layers, config)
        platform = Platform.parse(HOST_PLATFORM)
        assert platform is not None
        source = LayoutSource(lambda: FolderTree(folder / name))
        (found,) = source.read(Wanted([platform]), blobs, lambda _: None)
        return found

    no_shell = [entry for entry in system if entry.name != b"bin/sh"]
    which = file("etc/which", b"web")
    damaged = variant("damaged", [system, [file("etc/which", b"damaged")]], WEB)
    stored = folder / "blobs" / damaged.layers[-1].digest.replace(":", "/")
    content = bytearray(stored.read_bytes())
    content[len(content) // 2] ^= 1
    stored.chmod(0o600)
    stored.write_bytes(content)
    return Images(
        blobs,
        folder / "blobs",
        Variants(
            web=variant("web", [system, [which, SCRIPT]], WEB),
            data=variant("data", [system, [file("etc/which", b"data"), SCRIPT]], DATA),
            shellless=variant("shellless", [no_shell, [which, SCRIPT]], WEB),
            damaged=damaged,
        ),
    )


class OciHarness:
    """An installation of its own: label, durable folder, volatile folder."""

    offers = frozenset(Offer)
    provider: Provider

    def __init__(self, images: Images, settings: OciSettings | None = None) -> None:
        self.settings = settings or OciSettings()
        self.variants = images.variants
        # Not below pytest's own folder: sandboxes have to be able to walk to it.
        self.home = Path(tempfile.mkdtemp(prefix="sandbay-suite-", dir="/var/tmp"))
        self.home.chmod(0o711)
        self.run = Path("/run") / self.home.name
        self.installation = f"ins_{self.home.name.replace('-', '').replace('_', '')}"
        self._blobs = images.blobs
        self._open()

    def stop(self) -> None:
        """Let a node of another process work on the same folders."""
        self._opened.close()

    def restart(self) -> None:
        self._opened.close()
        self._open()

    def trace_of(self, variant: Variant) -> object:
        """Every file of the layer store with the inode that it has: unpacking anew makes new ones."""
        store = self.home / "store"
        return sorted((str(path), path.lstat().st_ino) for path in store.rglob("*") if "locks" not in path.parts)

    def kill(self, allocation: AllocationId) -> None:
        pid = self.provider.booted(allocation).host_pid
        handle = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        ended, _, _ = select.select([handle], [], [], GENEROUS)
        os.close(handle)
        assert ended

    def destroy_all(self) -> None:
        for allocation in self.provider.list_allocations():
            self.provider.destroy(allocation)

    def end(self) -> None:
        """Destroy what is left, and look whether the host has forgotten us."""
        self.destroy_all()
        self._opened.close()
        left = leftovers(self.installation, [self.run])
        shutil.rmtree(self.home)
        assert left == {}
        assert not self.run.exists()

    def _open(self) -> None:
        layers = LayerStore(self.home / "store", self._blobs)
        layers.sweep()
        self._opened = OciProvider(self.home, self.run, layers, self.installation, self.settings)
        self.provider = self._opened


@pytest.fixture
def fresh(images: Images) -> Iterator[OciHarness]:
    harness = OciHarness(images)
    yield harness
    harness.end()


@pytest.fixture(scope="class")
def shared(images: Images) -> Iterator[OciHarness]:
    harness = OciHarness(images)
    yield harness
    harness.end()


@pytest.fixture(scope="class")
def spawnerless(images: Images) -> Iterator[OciHarness]:
    harness = OciHarness(images, OciSettings(spawner=None))
    yield harness
    harness.end()


class TestState(StateSuite):
    @pytest.fixture
    def harness(self, fresh: OciHarness) -> OciHarness:
        return fresh


class TestSandboxes(SandboxSuite):
    @pytest.fixture
    def harness(self, shared: OciHarness) -> Iterator[OciHarness]:
        yield shared
        shared.destroy_all()
        assert leftovers(shared.installation, [shared.run]) == {}


@pytest.mark.slow
class TestThroughTheRuntime(ExecSuite, TerminalSuite, ConfinementSuite):
    """Where sandboxes have no spawner, the same holds."""

    @pytest.fixture
    def harness(self, spawnerless: OciHarness) -> Iterator[OciHarness]:
        yield spawnerless
        spawnerless.destroy_all()
        assert leftovers(spawnerless.installation, [spawnerless.run]) == {}


@pytest.fixture(scope="class")
def with_crun(images: Images) -> Iterator[OciHarness]:
    harness = OciHarness(images, OciSettings(runtime=_crun()))
    yield harness
    harness.end()


@pytest.fixture(scope="class")
def through_crun(images: Images) -> Iterator[OciHarness]:
    harness = OciHarness(images, OciSettings(runtime=_crun(), spawner=None))
    yield harness
    harness.end()


def _crun() -> str:
    if shutil.which("crun") is None:
        pytest.skip("this machine lacks crun")
    return "crun"


@pytest.mark.slow
class TestWithCrun(ConfinementSuite):
    """The limits and walls of a sandbox under the second runtime."""

    @pytest.fixture
    def harness(self, with_crun: OciHarness) -> Iterator[OciHarness]:
        yield with_crun
        with_crun.destroy_all()
        assert leftovers(with_crun.installation, [with_crun.run]) == {}


@pytest.mark.slow
class TestThroughCrun(ExecSuite):
    """Its own exec, which leaves a command's group as soon as it sees cgroup2."""

    @pytest.fixture
    def harness(self, through_crun: OciHarness) -> Iterator[OciHarness]:
        yield through_crun
        through_crun.destroy_all()


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [0, 150, 350, 600, 900, 1300, 1800, 2500])
def test_kill_9_of_the_node_at_any_time_loses_nothing(fresh: OciHarness, images: Images, milliseconds: int) -> None:
    web = images.variants.web
    arguments = [str(fresh.home), str(fresh.run), str(images.blobs_folder), fresh.installation]
    command = [sys.executable, "-m", "tests.support.node_at_work", *arguments, canonical(web).decode()]
    fresh.stop()
    node = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        assert node.stdout is not None
        assert node.stdout.readline() == b"begun\n"
        time.sleep(milliseconds / 1000)
        assert node.poll() is None
    finally:
        node.kill()
        node.communicate()

    fresh.restart()
    left = list(fresh.provider.list_allocations())
    assert len(left) <= 1
    for allocation in left:
        presence = fresh.provider.presence(allocation)
        assert presence in (Presence.RUNNING, Presence.EXITED)
        if presence is Presence.RUNNING:
            assert Sandbox(fresh, allocation).run("cat", "/etc/which").stdout == b"web"
    fresh.destroy_all()
    assert leftovers(fresh.installation, [fresh.run]) == {}
    sandbox = start(fresh, web)
    assert sandbox.run("cat", "/etc/which").stdout == b"web"
    fresh.provider.destroy(sandbox.allocation)
    fresh.provider.remove(web.content_key)
    assert list(fresh.provider.held()) == []
