"""A real installation of its own for tests: `sandbay up` as a process, driven by the command line."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.support.leaks import leftovers
from tests.support.oci_layout import BUSYBOX_CONFIG, HOST_PLATFORM, Layout, busybox_layers
from tests.support.tar_entries import Entry, file

SANDBAY = Path(sys.executable).parent / "sandbay"


@dataclasses.dataclass(frozen=True)
class Done:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def refusal(self) -> Any:
        """The error of the envelope on standard error."""
        return json.loads(self.err)["error"]


class Installation:
    """Its own home, run folder and port; everything is gone after `close`."""

    def __init__(self) -> None:
        # Below /var/tmp and not below pytest's own folder: that is 0700, and user namespaces could not pass it.
        self.root = Path(tempfile.mkdtemp(prefix="sandbay-e2e-", dir="/var/tmp"))
        self.root.chmod(0o711)
        self.home, self.run = self.root / "home", self.root / "run"
        self.port = _free_port()
        self.layouts = self.root / "layouts"
        self.layouts.mkdir()
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SANDBAY_")},
            "SANDBAY_HOME": str(self.home),
            "SANDBAY_RUN": str(self.run),
        }

    def cli(
        self, *arguments: str, stdin: bytes | None = None, timeout: float = 60, env: Mapping[str, str] | None = None
    ) -> Done:
        """Run `sandbay …` to its end."""
        done = subprocess.run(
            [SANDBAY, *arguments],
            env={**self.env, **(env or {})},
            input=stdin if stdin is not None else b"",
            capture_output=True,
            check=False,
            timeout=timeout,
        )
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def ok(self, *arguments: str, stdin: bytes | None = None) -> Done:
        """Run it and insist on exit code 0."""
        done = self.cli(*arguments, stdin=stdin)
        assert done.code == 0, f"sandbay {arguments}: {done}"
        return done

    def up(self, *options: str) -> int:
        """Start it; the pid that serves it."""
        self.ok("up", "--port", str(self.port), "--detach", *options)
        return self.pid

    @property
    def node_home(self) -> Path:
        """Where its node keeps images and sandboxes."""
        return self.home / "nodes" / "oci"

    @property
    def pid(self) -> int:
        """The pid that serves it."""
        return int((self.home / "lock").read_text())

    def kill(self) -> None:
        """Kill -9: no code of ours runs any more."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        subprocess.run(["tail", "--pid", str(pid), "-f", "/dev/null"], check=True, timeout=30)

    def end_process(self, pid: int) -> None:
        """Kill the first process of a sandbox from outside, as the kernel's memory killer would."""
        os.kill(pid, signal.SIGKILL)
        subprocess.run(["tail", "--pid", str(pid), "-f", "/dev/null"], check=True, timeout=30)

    def sql(self, statement: str, *values: str) -> None:
        """Change a row behind the product's back; the process must not be running."""
        with contextlib.closing(sqlite3.connect(self.home / "sandbay.db")) as database, database:
            database.execute(statement, values)

    def eventually(self, what: Callable[[], bool], *, within: float = 30) -> None:
        """Wait until it is true; the bound only says that it must end."""
        deadline = time.monotonic() + within
        while not what():
            assert time.monotonic() < deadline, "it did not come to that in time"
            time.sleep(0.1)

    def image(
        self, name: str, *extra: Entry, config: Mapping[str, Any] | None = None, platform: str = HOST_PLATFORM
    ) -> Path:
        """A busybox layout whose /which says `name`, in a folder of its own."""
        path = self.layouts / f"{name}-{len(list(self.layouts.iterdir()))}"
        top = [file("which", f"{name}\n".encode()), *extra]
        Layout(path).image([*busybox_layers(), top], config or BUSYBOX_CONFIG, platform=platform, ref=name)
        return path

    def register(self, name: str, layout: Path, *options: str) -> Done:
        """Register and wait for the verdict."""
        return self.cli("images", "register", name, "--from-layout", str(layout), "--wait", *options, "--json")

    def prefer(self, reference: str | None) -> None:
        """Set the standing preference of the project `default`, as its own key may."""
        body = {"runtime_image_id": reference}
        httpx.patch(f"{self._url}/v1/project", json=body, headers=self._key("api_key")).raise_for_status()

    def get(self, path: str, **query: str) -> Any:
        """What the administrator's key is answered."""
        answer = httpx.get(self._url + path, params=query, headers=self._key("admin_key"))
        answer.raise_for_status()
        return answer.json()

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What the key of the project `default` is answered."""
        answer = httpx.post(self._url + path, json=body, headers=self._key("api_key"), timeout=60)
        answer.raise_for_status()
        return answer.json()

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _key(self, kind: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {json.loads((self.home / 'context.json').read_text())[kind]}"}

    @property
    def label(self) -> str:
        """What everything of it carries on this host."""
        identity: dict[str, str] = json.loads((self.home / "identity.json").read_text())
        return identity["installation"]

    def left(self) -> dict[str, list[str]]:
        """What the host shows of it, by kind."""
        without_node = not (self.home / "identity.json").exists()
        return leftovers("ins_without_node" if without_node else self.label, [self.home, self.run])

    def close(self) -> None:
        """Stop it, see that nothing of it is left, and remove every file."""
        try:
            if self.home.exists():
                done = self.cli("down")
                assert (done.code, self.left()) == (0, {}), done
        finally:
            self._end()
            shutil.rmtree(self.root)

    def _end(self) -> None:
        """A test that failed midway leaves no process behind either."""
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
            if str(self.home).encode() in Path(f"/proc/{self.pid}/environ").read_bytes():
                os.kill(self.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
