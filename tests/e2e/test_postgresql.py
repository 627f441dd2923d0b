"""PostgreSQL through the command line: a real Session on it, and Cores without a node beside each other."""

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import URL

from tests.e2e.installation import SANDBAY, Installation
from tests.support.postgres import LOCKED, PASSWORD, Server

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.fixture
def url(postgres: Server) -> Iterator[URL]:
    """An empty database, for whoever knows the password."""
    made = postgres.database(migrated=False)
    yield postgres.url(made.database or "", LOCKED, PASSWORD)
    postgres.drop(made)


def written(url: URL) -> str:
    return url.render_as_string(hide_password=False)


@pytest.fixture
def house() -> Iterator[Installation]:
    it = Installation()
    yield it
    it.close()


def test_a_session_runs_and_is_adopted(house: Installation, url: URL) -> None:
    house.up("--database", written(url))
    assert house.register("plain", house.image("plain")).code == 0
    session = house.ok("sessions", "create", "--image", "plain", "--json").data["id"]
    before = house.ok("sessions", "get", session, "--json").data
    house.kill()
    house.up("--database", written(url))
    after = house.ok("sessions", "get", session, "--json").data
    assert (after["status"], after["host_pid"], after["image"]) == ("running", before["host_pid"], before["image"])
    assert house.ok("sessions", "exec", session, "--", "cat", "/which").out == "plain\n"
    house.ok("sessions", "rm", session)
    assert not (house.home / "sandbay.db").exists()
    said = (house.home / "log" / "sandbay.log").read_text() + Path(f"/proc/{house.pid}/cmdline").read_text()
    assert not any(secret in said for secret in (PASSWORD, written(url), written(url).split(":")[2].split("@")[0]))


class CoreAlone:
    """`sandbay core` as a process, with a home of its own."""

    def __init__(self, url: URL) -> None:
        self.house = Installation()
        self._log = (self.house.root / "said").open("wb")
        command: list[str | Path] = [SANDBAY, "core", "--port", str(self.house.port)]
        env = {**self.house.env, "SANDBAY_DATABASE": written(url)}
        self.process = subprocess.Popen(command, env=env, stdout=self._log, stderr=self._log)

    def ready(self) -> "CoreAlone":
        self.house.eventually(self._answers, within=60)
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.said
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{self.house.port}/readyz").status_code == 200
        return False

    @property
    def said(self) -> str:
        return (self.house.root / "said").read_text()

    def ask(self, method: str, path: str, key: str = "admin_key", **more: Any) -> httpx.Response:
        secret = json.loads((self.house.home / "context.json").read_text())[key]
        address = f"http://127.0.0.1:{self.house.port}{path}"
        return httpx.request(method, address, headers={"Authorization": f"Bearer {secret}"}, timeout=60, **more)

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self._log.close()
        said = self.said
        self.house.close()
        assert code == 0, said
        assert "s3cr3t" not in said
        assert "Traceback" not in said


@pytest.fixture
def cores(url: URL) -> Iterator[list[CoreAlone]]:
    """Two that start at the same moment on an empty database."""
    with contextlib.ExitStack() as stack:
        both = [CoreAlone(url), CoreAlone(url)]
        for it in both:
            stack.callback(it.close)
        yield [it.ready() for it in both]


def test_two_cores_beside_each_other(cores: list[CoreAlone]) -> None:
    """The whole interface with no node: what is registered stays pending, a Session is refused by name."""
    one, two = cores
    images = "/core/v1/sandbox/images"

    def make(number: int) -> int:
        return cores[number % 2].ask("POST", images, json={"name": f"i{number // 2}"}).status_code

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(make, range(12))) == [201] * 6 + [409] * 6
    assert one.ask("GET", images).json() == two.ask("GET", images).json()
    layout = one.house.image("i1")
    done = one.house.cli("images", "register", "i1", "--from-layout", str(layout), "--json")
    assert (done.code, done.data["state"]) == (0, "pending"), done
    for core in cores:
        assert core.ask("GET", f"{images}/i1/releases/1").json()["state"] == "pending"
        refused = core.ask("POST", "/v1/sessions", "api_key", json={"runtime_image_id": "i1:1"})
        assert refused.json()["error"]["code"] == "image_unsupported"
        unnamed = core.ask("POST", "/v1/sessions", "api_key", json={})
        assert unnamed.json()["error"]["code"] == "no_default_image"


def test_a_core_says_what_it_lacks(house: Installation) -> None:
    done = house.cli("core", "--json")
    assert (done.code, done.refusal["code"]) == (125, "invalid_body")
    assert "SANDBAY_DATABASE" in done.refusal["message"]
    done = house.cli("core", "--database", "postgresql://u:s3cr3t@127.0.0.1:1/x", "--port", str(house.port), "--json")
    assert (done.code, done.refusal["code"]) == (125, "database_unavailable")
    assert "s3cr3t" not in done.err + done.out
    assert "Traceback" not in done.err


def test_a_core_on_a_file(tmp_path: Path) -> None:
    """SQLite by its URL."""
    core = CoreAlone(URL.create("sqlite", database=str(tmp_path / "x.db")))
    try:
        core.ready()
        assert core.ask("GET", "/core/v1/sandbox/nodes").json()["items"] == []
    finally:
        core.close()
    assert (tmp_path / "x.db").exists()
