"""Who leads through the tour: shows each command before it runs it, and insists that it does what it shows."""

import json
import os
import shlex
import socket
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from sandbay.sdk import AdminClient, Client
from sandbay.sdk import context as contexts
from tools.machine import ROOT

SANDBAY = ROOT / ".venv" / "bin" / "sandbay"
REFUSED = 125
"""The exit code of everything that Sandbay refuses by name."""
_WIDTH = 100


class TourError(Exception):
    """A step did not do what it shows. The message says what, and what to do next."""


class Guide:
    """Runs commands the way a reader would, in an installation of the tour's own."""

    def __init__(self, home: Path) -> None:
        """`home` is the installation's data folder. One that an earlier tour left there is gone on with."""
        self.home = home
        self.port = _port_of(home) or _free_port()
        self.project_key: str | None = None
        self.sessions: dict[str, str] = {}
        """The id of the Session that is at work on an image."""
        self._step = 0

    def step(self, title: str, why: str) -> None:
        """Announce what comes, and why it matters."""
        self._step += 1
        print(f"\n{self._step}  {title}")
        print(textwrap.indent(textwrap.fill(why, _WIDTH), "   "), flush=True)

    def say(self, text: str = "") -> None:
        """A line, or several, of the tour's own."""
        print(textwrap.indent(text, "   "), flush=True)

    def run(self, *arguments: str, expect: int = 0) -> str:
        """Show `sandbay …`, run it, show what it prints and insist on its exit code; what it printed."""
        self.say(f"$ sandbay {shlex.join(arguments)}")
        done = self._sandbay(arguments)
        printed = done.stderr + done.stdout
        self.say(textwrap.indent(printed.rstrip(), "  "))
        if done.returncode != expect:
            raise TourError(f"`sandbay {shlex.join(arguments)}` ended with {done.returncode}, not {expect}; see above")
        return printed

    def ask(self, *arguments: str) -> Any:
        """Show the command, run it with `--json`, and return the document."""
        self.say(f"$ sandbay {shlex.join(arguments)}")
        done = self._sandbay((*arguments, "--json"))
        if done.returncode != 0:
            raise TourError(f"`sandbay {shlex.join(arguments)}` ended with {done.returncode}:\n{done.stderr.rstrip()}")
        return json.loads(done.stdout)

    def administrator(self) -> AdminClient:
        """The SDK's client with the administrator key, which `sandbay up` wrote down."""
        known = self._context()
        return AdminClient(known.url, known.administrator_key())

    def project(self) -> Client:
        """The SDK's client with the project key."""
        return Client(self._context().url, self.project_key)

    @property
    def url(self) -> str:
        """Where the installation answers."""
        return f"http://127.0.0.1:{self.port}"

    def _sandbay(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SANDBAY, *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def _environment(self) -> dict[str, str]:
        """Nothing of another installation that the reader may be used to."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("SANDBAY_")}
        ours = {
            "SANDBAY_HOME": str(self.home),
            # What was built once is not built again, after --exit neither.
            "SANDBAY_BUILD_CACHE": os.environ.get("SANDBAY_BUILD_CACHE") or str(ROOT / "build" / "cache"),
        }
        key = {"SANDBAY_API_KEY": self.project_key} if self.project_key else {}
        return {**plain, **ours, **key}

    def _context(self) -> contexts.Context:
        return contexts.find({contexts.HOME: str(self.home)})


def insist(condition: object, otherwise: str) -> None:
    """Raise `TourError` unless the condition holds."""
    if not condition:
        raise TourError(otherwise)


def _port_of(home: Path) -> int | None:
    try:
        url: str = json.loads((home / "context.json").read_text())["url"]
    except FileNotFoundError:
        return None
    return int(url.rpartition(":")[2])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
