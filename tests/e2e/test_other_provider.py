"""An adapter that somebody else ships, as a wheel of its own: it is found, and not a line of ours knows it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.installation import Installation

pytestmark = [pytest.mark.real, pytest.mark.slow]
SOURCES = Path(__file__).parents[1] / "other_provider"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put the wheel."""
    folder = tmp_path_factory.mktemp("other-provider")
    python = [sys.executable, "-m"]
    built = [*python, "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(built, cwd=SOURCES, check=True, capture_output=True)
    (wheel,) = folder.glob("sandbay_memory-*.whl")
    into = [*python, "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(folder / "site")]
    subprocess.run([*into, str(wheel)], check=True, capture_output=True)
    return folder / "site"


def _installation(shipped: Path, providers: str) -> Iterator[Installation]:
    it = Installation()
    it.env |= {"PYTHONPATH": str(shipped), "SANDBAY_PROVIDERS": providers}
    try:
        it.up()
        yield it
    finally:
        it.close()


@pytest.fixture
def alone(shipped: Path) -> Iterator[Installation]:
    yield from _installation(shipped, "memory")


@pytest.fixture
def beside(shipped: Path) -> Iterator[Installation]:
    yield from _installation(shipped, "oci,memory")


def test_it_does_the_whole_main_job(alone: Installation, tmp_path: Path) -> None:
    for name in ("plain", "web"):
        done = alone.register(name, alone.image(name), "--promote", "stable")
        assert done.code == 0, done
    assert alone.ok("run", "web", "--", "cat", "/which").out == "web\n", "plain is there, too, and the default"
    session = alone.ok("sessions", "create", "--image", "web", "--json").data["id"]
    assert alone.ok("sessions", "get", session, "--json").data["runtime"] == "memory"
    assert alone.ok("sessions", "exec", session, "--shell", "echo 7; cat /which").out == "7\nweb\n"
    (tmp_path / "in").write_bytes(b"bytes")
    alone.ok("sessions", "cp", str(tmp_path / "in"), f"{session}:in")
    alone.ok("sessions", "cp", f"{session}:in", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"bytes"
    alone.ok("sessions", "rm", session)
    refused = alone.cli("sessions", "create", "--image", "web", "--network", "enabled", "--json")
    assert refused.refusal["code"] == "network_unsupported", "what it does not declare is refused"
    alone.ok("images", "evict", "web")
    assert alone.cli("run", "web", "--wait", "0", "--json", "--", "true").refusal["code"] == "image_not_ready"
    assert alone.ok("run", "web", "--", "cat", "/which").out == "web\n"


def test_it_serves_a_pool_beside_another_ones(beside: Installation) -> None:
    for name in ("plain", "web"):
        assert beside.register(name, beside.image(name)).code == 0
    pools = beside.ok("deployment", "show", "--json").data["pools"]
    assert [(pool["name"], pool["provider"]) for pool in pools] == [("local", "oci"), ("local-memory", "memory")]
    sessions = [_created_in(beside, name) for name in ("local", "local-memory")]
    runtimes = [beside.ok("sessions", "get", session, "--json").data["runtime"] for session in sessions]
    assert "memory" not in runtimes[0]
    assert runtimes[1] == "memory"
    which = [beside.ok("sessions", "exec", session, "--", "cat", "/which").out for session in sessions]
    assert which == ["web\n", "web\n"], "the same image on both"
    for session in sessions:
        beside.ok("sessions", "rm", session)


def _created_in(house: Installation, pool: str) -> str:
    """A Session of `web` while the other pools are paused."""
    deployment = house.ok("deployment", "show", "--json").data
    for each in deployment["pools"]:
        each["admission"] = "open" if each["name"] == pool else "paused"
    house.ok("deployment", "set", "-", stdin=json.dumps(deployment).encode())
    session: str = house.ok("sessions", "create", "--image", "web", "--json").data["id"]
    return session


def test_what_is_not_installed_is_refused_by_name() -> None:
    house = Installation()
    try:
        house.env["SANDBAY_PROVIDERS"] = "oci,nosuch"
        done = house.cli("up", "--port", str(house.port), "--detach")
        assert done.code == 125
        assert "no adapter for nosuch is installed" in done.err
        assert house.cli("doctor").code != 0
    finally:
        house.close()
