"""buildah keeps the contract of the port `builder`; and what only a real build can get wrong."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbay.adapters.builders.builder import HostBuilder
from sandbay.adapters.builders.cache import BuildCache
from sandbay.adapters.image_source.layout import FolderTree, LayoutSource
from tests.contracts.builder_suite import PLATFORM, Bench, BuilderSuite

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="building needs root"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """Below /var/tmp: pytest's own folders may be on a file system that overlay cannot stand on."""
    folder = Path(tempfile.mkdtemp(prefix="sandbay-builder-", dir="/var/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def open_builder(place: Path, cache: BuildCache | None = None) -> HostBuilder:
    assert PLATFORM is not None
    return HostBuilder(place / "builds", PLATFORM, lambda path: LayoutSource(lambda: FolderTree(path)), cache)


def left(place: Path) -> list[str]:
    """Files of builds, their processes, their mounts."""
    files = [str(path) for path in (place / "builds").iterdir()]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(place) in line]
    processes = subprocess.run(["pgrep", "-f", str(place)], capture_output=True, text=True, check=False).stdout
    return [*files, *mounts, *processes.split()]


class TestHostBuilder(BuilderSuite):
    @pytest.fixture
    def builder(self, place: Path) -> HostBuilder:
        return open_builder(place)

    @pytest.fixture
    def leftovers(self, place: Path) -> Callable[[], object]:
        return lambda: left(place)

    def test_steps_run_within_their_bounds(self, bench: Bench) -> None:
        bench.build("FROM image:base", "RUN cat /proc/self/cgroup")
        groups = set(re.findall(r"sandbay-build-[0-9a-f]+", "".join(bench.said)))
        assert len(groups) == 1, bench.said
        assert not [path for path in Path("/sys/fs/cgroup").glob(f"*/{groups.pop()}") if path.exists()]
