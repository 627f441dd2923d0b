"""Whatever moment a prepare ends in, nothing half-made is visible, and the next one succeeds."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sandbay.domain.release import Variant
from sandbay.engine import linux
from tests.engine.store_support import AMD64, NOTHING, Host, ignore
from tests.support.oci_layout import Layout
from tests.support.tar_entries import file, folder

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: unpacking sets owners and confines itself"),
]

# Runs a prepare that kills itself (SIGKILL) at the n-th change to the store's names; n = 0: never.
CHILD = """
import os, signal, sys
from pathlib import Path
from tests.engine.store_support import Host, ignore
scratch, layout, at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
host = Host(scratch)
variant = host.register(layout)
seen = 0
def watch(event, arguments):
    global seen
    if event in ("os.rename", "os.mkdir", "os.rmdir", "os.remove") and str(scratch) in str(arguments[0]):
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
print("ready", flush=True)
host.store.prepare(variant, ignore)
"""
MOST_STEPS = 60


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    layout = Layout(tmp_path / "layout")
    layout.image([[folder("etc"), file("etc/keep", b"lower")]], platform=AMD64)
    return layout.path


@pytest.fixture
def two_layers(tmp_path: Path) -> Path:
    layout = Layout(tmp_path / "two")
    layout.image([[folder("etc"), file("etc/keep", b"lower")], [file("top", b"t")]], platform=AMD64)
    return layout.path


def child(tmp_path: Path, layout: Path, at: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CHILD, str(tmp_path), str(layout), str(at)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])


def check_recovery(host: Host, variant: Variant) -> None:
    """After a restart: what is held is whole, nothing else is in the way, and preparing works."""
    assert set(host.restarted().held()) <= {variant.content_key}
    host.check_whole()
    host.store = host.restarted()
    host.store.prepare(variant, ignore)
    assert host.content(variant, "etc/keep") == b"lower"
    host.check_whole()
    host.store.remove(variant.content_key)
    assert host.count() == NOTHING


def test_kills_at_any_time(host: Host, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "many")
    noise = random.Random(7)  # noqa: S311 - the same moments every time
    layers = [[folder("etc"), file("etc/keep", b"lower")]]
    layers += [[file(f"{layer}-{n}", noise.randbytes(3000)) for n in range(300)] for layer in range(4)]
    layout.image(layers, platform=AMD64)
    variant = host.register(layout.path)
    for _ in range(5):
        with child(tmp_path, layout.path, 0) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            time.sleep(noise.random() * 0.6)
            process.kill()
        assert set(host.restarted().held()) <= {variant.content_key}
        host.check_whole()
    check_recovery(host, variant)


STEPS: dict[str, tuple[Any, str]] = {
    "rename": (os, "rename"),
    "mkdir": (os, "mkdir"),
    "fsync": (os, "fsync"),
    "syncfs": (linux, "syncfs"),
    "rmdir": (os, "rmdir"),
}


class PlantedError(OSError):
    """Not one that the store knows."""


class Failing:
    """A function that fails once."""

    def __init__(self, real: Callable[..., Any], at: int) -> None:
        self.real, self.at, self.calls = real, at, 0
        self.error: OSError = PlantedError(errno.EIO, "planted")

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.real(*args, **more)


@pytest.mark.parametrize("step", STEPS)
def test_a_fault_at_every_step(step: str, host: Host, layout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variant = host.register(layout)
    where, name = STEPS[step]
    for at in range(1, MOST_STEPS):
        plan = Failing(getattr(where, name), at)
        with monkeypatch.context() as patch, suppress(PlantedError):
            patch.setattr(where, name, plan)
            host.store.prepare(variant, ignore)
        check_recovery(host, variant)
        if plan.calls < at:
            assert at > 1
            return
    pytest.fail("a prepare takes more steps than this test knows")


def test_a_restart_leaves_alone_what_others_are_making(host: Host, two_layers: Path) -> None:
    variant = host.register(two_layers)
    restarts = 0

    def restart(_: object) -> None:
        nonlocal restarts
        restarts += 1
        host.restarted()

    host.store.prepare(variant, restart)
    assert restarts > 3
    assert host.store.held() == (variant.content_key,)
    host.check_whole()


def test_layers_of_a_killed_prepare_are_taken_up_or_dropped(host: Host, two_layers: Path, tmp_path: Path) -> None:
    variant = host.register(two_layers)
    other = Layout(tmp_path / "other")
    other.image([[file("other")]], platform=AMD64)
    with child(tmp_path, two_layers, 13) as process:
        process.communicate()
    left = host.count()["l"]
    assert process.returncode == -signal.SIGKILL
    assert left > 0
    host.store = host.restarted()
    assert host.count()["l"] == left
    host.blobs.opened.clear()
    host.store.prepare(variant, ignore)
    assert len(host.blobs.opened) == 2 + len(variant.layers) - left
    host.store.remove(variant.content_key)

    with child(tmp_path, two_layers, 13) as process:
        process.communicate()
    host.store = host.restarted()
    host.store.prepare(host.register(other.path), ignore)
    assert host.count()["l"] == 1
