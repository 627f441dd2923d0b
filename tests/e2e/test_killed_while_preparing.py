"""Kill -9 of a whole node in the middle of a prepare: the next start makes it good, and the release gets ready."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.installation import Installation
from tests.support.tar_entries import file

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
STEPS = [
    ("syncfs", 1),  # all is fetched and unpacked
    ("rename staging", 2),  # the layer's tree has its place, and no record
    ("rename staging", 5),  # the release is about to be committed
]


@pytest.fixture
def house() -> Iterator[Installation]:
    it = Installation()
    try:
        it.up()
        assert it.register("base", it.image("base")).code == 0
        yield it
    finally:
        it.close()


def up_to_die(house: Installation, step: str, number: int) -> subprocess.Popen[bytes]:
    """`sandbay up` that dies before the step, once it serves."""
    command = [sys.executable, "-m", "tests.support.dying_node", step, str(number), "up", "--port", str(house.port)]
    quiet = subprocess.DEVNULL
    dying = subprocess.Popen(command, cwd=ROOT, env=house.env, stdin=quiet, stdout=quiet, stderr=quiet)

    def ready() -> bool:
        assert dying.poll() is None, "it has ended before anything was to be prepared"
        try:
            return httpx.get(f"http://127.0.0.1:{house.port}/readyz").is_success
        except httpx.TransportError:
            return False

    house.eventually(ready)
    dying.send_signal(signal.SIGUSR1)
    return dying


def leftovers(house: Installation) -> list[str]:
    """What lies in the store and belongs to nothing."""
    store = house.node_home / "store"
    trees = {json.loads(path.read_text())["short"] for path in (store / "layers").iterdir()}
    loose = [path.name for path in (store / "l").iterdir() if path.name not in trees]
    return [*loose, *(path.name for path in (store / "staging").iterdir())]


def test_a_node_that_is_killed_while_it_prepares(house: Installation) -> None:
    for at, (step, number) in enumerate(STEPS):
        name = f"web-{at}"
        layout = house.image(name, file("data", name.encode() * 1000))
        house.kill()
        dying = up_to_die(house, step, number)
        house.cli("images", "register", name, "--from-layout", str(layout))  # it may be answered, or not any more
        try:
            assert dying.wait(timeout=60) == -9, f"{step} {number} was never reached"
        finally:
            dying.kill()
            dying.wait()

        house.ok("up", "--port", str(house.port), "--detach")
        assert house.register(name, layout).data["state"] == "active"
        assert house.ok("run", name, "--", "cat", "/data").out == name * 1000
        assert leftovers(house) == []
    assert house.ok("run", "base", "--", "cat", "/which").out == "base\n"
    assert house.ok("images", "verify", "--json").data["seen"] == "whole"
